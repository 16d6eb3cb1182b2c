"""Create the rows by which publications take turns."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import OID

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"

# Whoever may publish goes on publishing.
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
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON dbanon.publishing TO %s', publisher);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "publishing",
        sa.Column("source", OID(), nullable=False),
        sa.Column("turns", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("source", name="publishing_pkey"),
        schema=SCHEMA,
        comment="A row for each table that was ever published, locked while it is.",
    )
    op.execute(GRANTS)


def downgrade() -> None:
    op.drop_table("publishing", schema=SCHEMA)
