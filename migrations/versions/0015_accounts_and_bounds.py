"""Count the entries of spending beside them, and bound the times and attempts of jobs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import OID

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"

# A time beyond these is one that programs cannot read, infinity included. NULL is none.
_OF_JOBS = "due_at, entered_at, not_before, begun_at, ended_at"
READABLE = {
    "schedule": "stored_at BETWEEN '1970-01-01 00:00:00+00' AND '9000-01-01 00:00:00+00'",
    "job": f"least({_OF_JOBS}) >= '1970-01-01 00:00:00+00'"
    f" AND greatest({_OF_JOBS}) <= '9000-01-01 00:00:00+00'",
}
MOST_ATTEMPTS = 100

NUMBERS = """
UPDATE dbanon.spending AS s
   SET number = n.number
  FROM (SELECT e.spending_id,
               CASE WHEN e.epsilon = 'NaN' THEN 0
                    ELSE row_number() OVER (PARTITION BY e.table_schema, e.table_name,
                                                         e.epsilon = 'NaN'
                                                ORDER BY e.spending_id) END AS number
          FROM dbanon.spending AS e) AS n
 WHERE n.spending_id = s.spending_id
"""

ACCOUNTS = """
INSERT INTO dbanon.account (table_schema, table_name, table_oid, entries)
SELECT table_schema, table_name, (array_agg(table_oid ORDER BY spending_id DESC))[1], max(number)
  FROM dbanon.spending
 WHERE number > 0
 GROUP BY table_schema, table_name
"""

# Whoever may spend reads what was spent; the trigger that counts entries is the owner's.
GRANTS = """
DO $$
DECLARE
    publisher regrole;
BEGIN
    FOR publisher IN
        SELECT a.grantee
          FROM pg_class AS c
         CROSS JOIN LATERAL aclexplode(c.relacl) AS a
         WHERE c.oid = 'dbanon.spending'::regclass
           AND a.privilege_type = 'INSERT'
           AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT ON dbanon.account TO %s', publisher);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.add_column("spending", sa.Column("number", sa.BigInteger(), nullable=True), schema=SCHEMA)
    op.create_table(
        "account",
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("table_oid", OID(), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("table_schema", "table_name", name="account_pkey"),
        schema=SCHEMA,
        comment="How many entries spending has of a table, so that none is lost unnoticed.",
    )
    op.execute(NUMBERS)
    op.execute(ACCOUNTS)
    op.execute(GRANTS)
    # What no program could read did not run: a schedule counts from now, a job is asked for again.
    bad = f"NOT ({READABLE['schedule']})"
    op.execute(f"UPDATE dbanon.schedule SET stored_at = now() WHERE {bad}")  # noqa: S608
    bad = f"attempts NOT BETWEEN 0 AND {MOST_ATTEMPTS} OR NOT ({READABLE['job']})"
    op.execute(f"DELETE FROM dbanon.job WHERE {bad}")  # noqa: S608
    for table, readable in READABLE.items():
        op.create_check_constraint(op.f(f"{table}_times_check"), table, readable, schema=SCHEMA)
    op.create_check_constraint(
        op.f("job_attempts_check"), "job", f"attempts BETWEEN 0 AND {MOST_ATTEMPTS}", schema=SCHEMA
    )


def downgrade() -> None:
    for table in ("policy_version", "release", "verification", "spending", "schedule"):
        op.execute(f"DROP TRIGGER IF EXISTS dbanon_sign ON dbanon.{table}")
    op.execute("DROP TRIGGER IF EXISTS dbanon_number ON dbanon.spending")
    op.execute("DROP FUNCTION IF EXISTS dbanon.sign()")
    op.execute("DROP FUNCTION IF EXISTS dbanon.number_spending()")
    for table in READABLE:
        op.drop_constraint(op.f(f"{table}_times_check"), table, schema=SCHEMA)
    op.drop_constraint(op.f("job_attempts_check"), "job", schema=SCHEMA)
    op.drop_table("account", schema=SCHEMA)
    op.drop_column("spending", "number", schema=SCHEMA)
