"""Keep what comparing releases found; note whether a person may have several rows."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"

UNCOMPRESSED = """
ALTER TABLE dbanon.history_member
    ALTER COLUMN persons SET STORAGE EXTERNAL,
    ALTER COLUMN classes SET STORAGE EXTERNAL
"""
COMPRESSED = """
ALTER TABLE dbanon.history_member
    ALTER COLUMN persons SET STORAGE EXTENDED,
    ALTER COLUMN classes SET STORAGE EXTENDED
"""

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
         WHERE c.oid = 'dbanon.history'::regclass
           AND a.privilege_type = 'INSERT'
           AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT, INSERT ON dbanon.history_figures TO %s', publisher);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.add_column(
        "history",
        sa.Column("several", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        schema=SCHEMA,
    )
    # Nothing compresses hashes, and to try takes longer than to write them.
    op.execute(UNCOMPRESSED)
    op.create_table(
        "history_figures",
        sa.Column("release_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("figures", JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("release_id", name="history_figures_pkey"),
        schema=SCHEMA,
        comment="What comparing a release with those before found, from which the next one starts.",
    )
    op.execute(GRANTS)


def downgrade() -> None:
    op.drop_table("history_figures", schema=SCHEMA)
    op.execute(COMPRESSED)
    op.drop_column("history", "several", schema=SCHEMA)
