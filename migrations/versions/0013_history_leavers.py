"""Remember since when those are gone whom a release shows, and which releases are forgotten."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, UUID

revision = "0013"
down_revision = "0012"
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
         WHERE c.oid = 'dbanon.history'::regclass
           AND a.privilege_type = 'INSERT'
           AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, DELETE ON dbanon.history_leaver TO %s', publisher);
        EXECUTE format('GRANT DELETE ON dbanon.history_figures TO %s', publisher);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "history_leaver",
        sa.Column("relation_schema", sa.Text(), nullable=False),
        sa.Column("relation_name", sa.Text(), nullable=False),
        sa.Column("missed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("persons", ARRAY(UUID()), nullable=False),
        sa.PrimaryKeyConstraint(
            "relation_schema", "relation_name", "missed_at", name="history_leaver_pkey"
        ),
        schema=SCHEMA,
        comment="Those whom a relation shows though they are gone, and which refresh missed them.",
    )
    op.add_column("history", sa.Column("forgotten_at", sa.DateTime(timezone=True)), schema=SCHEMA)
    op.execute(GRANTS)


# An earlier version would continue a series of which nobody knows any more whom it showed.
REFUSE = f"""
DO $$
BEGIN
    IF EXISTS (SELECT FROM {SCHEMA}.history WHERE forgotten_at IS NOT NULL) THEN
        RAISE EXCEPTION 'a series was forgotten: an earlier version would compare it with nothing';
    END IF;
END
$$
"""


def downgrade() -> None:
    op.execute(REFUSE)
    op.drop_column("history", "forgotten_at", schema=SCHEMA)
    op.drop_table("history_leaver", schema=SCHEMA)
