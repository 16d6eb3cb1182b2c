"""Remember who was published in which class, so that releases can be compared."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"

# Whoever may publish goes on publishing; nobody else is to read what the tables hold.
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
        EXECUTE format('GRANT SELECT, INSERT ON dbanon.history, dbanon.history_key,'
                       ' dbanon.history_member, dbanon.history_value TO %s', publisher);
    END LOOP;
END
$$
"""


def upgrade() -> None:
    op.create_table(
        "history_key",
        sa.Column("key_id", UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("inner_key", sa.LargeBinary(), nullable=False),
        sa.Column("outer_key", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", name="history_key_pkey"),
        schema=SCHEMA,
        comment="The secret keys of the hashes that persons are remembered by (HMAC-SHA256).",
    )
    op.create_table(
        "history",
        sa.Column("release_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("relation_schema", sa.Text(), nullable=False),
        sa.Column("relation_name", sa.Text(), nullable=False),
        sa.Column("person", ARRAY(sa.Text()), nullable=False),
        sa.Column("key_id", UUID(), nullable=False),
        sa.PrimaryKeyConstraint("release_id", name="history_pkey"),
        schema=SCHEMA,
        comment="The releases whose persons are remembered, and by which columns these are told.",
    )
    op.create_table(
        "history_member",
        sa.Column("release_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("persons", ARRAY(UUID()), nullable=False),
        sa.Column("classes", ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("value_ids", ARRAY(sa.Integer()), nullable=False),
        sa.PrimaryKeyConstraint("release_id", "part", name="history_member_pkey"),
        schema=SCHEMA,
        comment="The persons whose class or values are others than in the release before.",
    )
    op.create_table(
        "history_value",
        sa.Column("value_id", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("value", JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("value_id", name="history_value_pkey"),
        sa.UniqueConstraint(
            "table_schema",
            "table_name",
            "digest",
            name="history_value_table_schema_table_name_digest_key",
        ),
        schema=SCHEMA,
        comment="The sensitive values that were published of a table, each combination once.",
    )
    op.execute(GRANTS)


def downgrade() -> None:
    for table in ("history_value", "history_member", "history", "history_key"):
        op.drop_table(table, schema=SCHEMA)
