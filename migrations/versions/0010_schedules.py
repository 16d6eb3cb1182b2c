"""Remember when tables are to be refreshed, and the refreshes that workers do."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"

# Whoever may publish may schedule, and do what is scheduled.
GRANTS = """
DO $$
DECLARE
    publisher regrole;
BEGIN
    FOR publisher IN
        SELECT a.grantee
          FROM pg_class AS c
         CROSS JOIN LATERAL aclexplode(c.relacl) AS a
         WHERE c.oid = 'dbanon.release'::regclass
           AND a.privilege_type = 'INSERT'
           AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON dbanon.schedule, dbanon.job TO %s',
                       publisher);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "schedule",
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column(
            "stored_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("stored_by", sa.Text(), server_default=sa.text("session_user"), nullable=False),
        sa.PrimaryKeyConstraint("table_schema", "table_name", name="schedule_pkey"),
        schema=SCHEMA,
        comment="When tables are refreshed, by cron expressions.",
    )
    op.create_table(
        "job",
        sa.Column("job_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "entered_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("begun_after", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('waiting', 'running', 'done', 'failed')", name="job_state_check"
        ),
        sa.PrimaryKeyConstraint("job_id", name="job_pkey"),
        sa.UniqueConstraint(
            "table_schema", "table_name", "due_at", name="job_table_schema_table_name_due_at_key"
        ),
        schema=SCHEMA,
        comment="The refreshes that workers are to do, are doing and have done.",
    )
    op.create_index(
        "job_waiting_key",
        "job",
        ["table_schema", "table_name"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.execute(GRANTS)


def downgrade() -> None:
    op.execute("DROP FUNCTION IF EXISTS dbanon.enqueue(regclass)")
    for table in ("job", "schedule"):
        op.drop_table(table, schema=SCHEMA)
