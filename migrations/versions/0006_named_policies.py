"""Let a table have several policies, and remember every one that was stored."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"

# The history begins with what is stored: who stored it is not known.
FIRST_VERSIONS = """
INSERT INTO dbanon.policy_version
    (table_schema, table_name, name, version, document, stored_at, stored_by)
SELECT table_schema, table_name, name, 1, document, updated_at, NULL
  FROM dbanon.policy
"""

# Whoever may store a policy goes on storing them.
GRANTS = """
DO $$
DECLARE
    steward regrole;
BEGIN
    FOR steward IN
        SELECT a.grantee
          FROM pg_class AS c
         CROSS JOIN LATERAL aclexplode(c.relacl) AS a
         WHERE c.oid = 'dbanon.policy'::regclass
           AND a.privilege_type = 'INSERT'
           AND a.grantee NOT IN (0, c.relowner)
    LOOP
        EXECUTE format('GRANT SELECT, INSERT ON dbanon.policy_version TO %s', steward);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.add_column(
        "policy",
        sa.Column("name", sa.Text(), server_default=sa.text("'default'"), nullable=False),
        schema=SCHEMA,
    )
    key = ["table_schema", "table_name", "name"]
    op.drop_constraint("policy_pkey", "policy", type_="primary", schema=SCHEMA)
    op.create_primary_key("policy_pkey", "policy", key, schema=SCHEMA)
    op.create_table(
        "policy_version",
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", JSONB(), nullable=True),
        sa.Column(
            "stored_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("stored_by", sa.Text(), server_default=sa.text("session_user"), nullable=True),
        sa.PrimaryKeyConstraint(*key, "version", name="policy_version_pkey"),
        schema=SCHEMA,
        comment="Every policy that was ever stored; one without a document was dropped.",
    )
    op.execute(FIRST_VERSIONS)
    op.execute(GRANTS)


def downgrade() -> None:
    op.drop_table("policy_version", schema=SCHEMA)
    op.execute("DELETE FROM dbanon.policy WHERE name <> 'default'")
    op.drop_constraint("policy_pkey", "policy", type_="primary", schema=SCHEMA)
    op.drop_column("policy", "name", schema=SCHEMA)
    op.create_primary_key("policy_pkey", "policy", ["table_schema", "table_name"], schema=SCHEMA)
