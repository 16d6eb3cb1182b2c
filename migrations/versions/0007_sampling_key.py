"""Keep a secret by which the persons of samples are drawn."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"
NEW_KEY = "sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))"

# Whoever may store a policy may publish by it.
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
        EXECUTE format('GRANT SELECT ON dbanon.sampling_key TO %s', steward);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "sampling_key",
        sa.Column("is_only", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("key", sa.LargeBinary(), server_default=sa.text(NEW_KEY), nullable=False),
        sa.CheckConstraint("is_only", name="sampling_key_is_only_check"),
        sa.PrimaryKeyConstraint("is_only", name="sampling_key_pkey"),
        schema=SCHEMA,
        comment="The secret by which the persons of samples are drawn.",
    )
    # The server makes the key, so that no statement and no script holds it.
    op.execute("INSERT INTO dbanon.sampling_key DEFAULT VALUES")
    op.execute(GRANTS)


def downgrade() -> None:
    op.drop_table("sampling_key", schema=SCHEMA)
