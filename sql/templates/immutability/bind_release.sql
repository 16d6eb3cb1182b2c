-- Give the copy a type of its own: PostgreSQL changes no column of a typed table, and gives it no parent.
DO {body}
