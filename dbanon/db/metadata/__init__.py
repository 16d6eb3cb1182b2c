"""The schema ``dbanon``: its tables, its migrations and what is stored in it."""
