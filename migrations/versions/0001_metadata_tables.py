"""Create the metadata tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "dbanon"


def upgrade() -> None:
    op.create_table(
        "taxonomy",
        sa.Column("taxonomy_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("n_leaves", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint("version >= 1", name="taxonomy_version_check"),
        sa.PrimaryKeyConstraint("taxonomy_id", name="taxonomy_pkey"),
        sa.UniqueConstraint("name", "version", name="taxonomy_name_version_key"),
        schema=SCHEMA,
        comment="A version of the tree above the values of a column.",
    )
    op.create_table(
        "taxonomy_node",
        sa.Column("taxonomy_id", sa.BigInteger(), nullable=False),
        sa.Column("node_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("leaf_lo", sa.Integer(), nullable=False),
        sa.Column("leaf_hi", sa.Integer(), nullable=False),
        sa.CheckConstraint("(parent_id IS NULL) = (node_id = 0)", name="taxonomy_node_root_check"),
        sa.CheckConstraint("leaf_lo <= leaf_hi", name="taxonomy_node_leaves_check"),
        sa.ForeignKeyConstraint(
            ["taxonomy_id"],
            [f"{SCHEMA}.taxonomy.taxonomy_id"],
            name="taxonomy_node_taxonomy_id_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("taxonomy_id", "node_id", name="taxonomy_node_pkey"),
        schema=SCHEMA,
        comment="The nodes of a taxonomy in depth-first preorder, with their interval of leaves.",
    )
    op.create_table(
        "policy",
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("document", JSONB(), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("table_schema", "table_name", name="policy_pkey"),
        schema=SCHEMA,
        comment="What to publish of a table, and what must hold of it.",
    )
    op.create_table(
        "release",
        sa.Column("release_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("table_schema", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("relation_schema", sa.Text(), nullable=False),
        sa.Column("relation_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("policy", JSONB(), nullable=False),
        sa.Column("overrides", JSONB(), nullable=False),
        sa.Column("taxonomies", JSONB(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("checks", sa.JSON(), nullable=False),
        sa.Column("loss", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("served", sa.Boolean(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("created_by", sa.Text(), server_default=sa.text("session_user"), nullable=False),
        sa.CheckConstraint("kind IN ('table', 'view')", name="release_kind_check"),
        sa.PrimaryKeyConstraint("release_id", name="release_pkey"),
        schema=SCHEMA,
        comment="The ledger: every release, what was proved of it, and whether it is served now.",
    )
    op.create_index(
        "release_served_key",
        "release",
        ["relation_schema", "relation_name"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("served"),
    )


def downgrade() -> None:
    op.drop_table("release", schema=SCHEMA)
    op.drop_table("policy", schema=SCHEMA)
    op.drop_table("taxonomy_node", schema=SCHEMA)
    op.drop_table("taxonomy", schema=SCHEMA)
