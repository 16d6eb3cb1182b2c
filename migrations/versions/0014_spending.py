"""Note what counts with noise have spent of the budget of a table."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, OID

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"

# Whoever may publish may count; nobody but the owner may take back what was spent.
GRANTS = """
DO $$
DECLARE
    publisher regrole;
BEGIN
    FOR publisher IN
        SELECT a.grantee
          FROM pg_class AS c
         CROSS JOIN LATERAL aclexplode(c.relacl) AS a
         WHERE c.oid = 'dbanon.history'::regclass
           AND a.privilege_type = 'INSERT'
           AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT, INSERT ON dbanon.spending TO %s', publisher);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "spending",
        sa.Column("spending_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_oid", OID(), nullable=False),
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("epsilon", sa.Numeric(), nullable=False),
        sa.Column("columns", ARRAY(sa.Text()), nullable=False),
        sa.Column(
            "spent_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("spent_by", sa.Text(), server_default=sa.text("session_user"), nullable=False),
        sa.CheckConstraint("epsilon > 0", name="spending_epsilon_check"),
        sa.PrimaryKeyConstraint("spending_id", name="spending_pkey"),
        schema=SCHEMA,
        comment="What counts with noise have spent, of the budget that the policy of a table has.",
    )
    op.execute(GRANTS)


# An earlier version would know of no budget, and none of its own has ever been spent.
REFUSE = f"""
DO $$
BEGIN
    IF EXISTS (SELECT FROM {SCHEMA}.spending) THEN
        RAISE EXCEPTION 'noisy counts were published: what they have spent would be forgotten';
    END IF;
END
$$
"""


def downgrade() -> None:
    op.execute(REFUSE)
    op.drop_table("spending", schema=SCHEMA)
