"""Create the history of verifications."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"


def upgrade() -> None:
    op.create_table(
        "verification",
        sa.Column("verification_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("release_id", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("results", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "verified_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("verified_by", sa.Text(), server_default=sa.text("session_user"), nullable=False),
        sa.CheckConstraint(
            "verdict IN ('passed', 'failed', 'not checked')",
            name=op.f("verification_verdict_check"),
        ),
        sa.ForeignKeyConstraint(
            ["release_id"],
            [f"{SCHEMA}.release.release_id"],
            name="verification_release_id_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("verification_id", name="verification_pkey"),
        schema=SCHEMA,
        comment="The ledger's later pages: every check of a served release, and what it found.",
    )
    op.create_index(
        "verification_release_id_idx", "verification", ["release_id"], unique=False, schema=SCHEMA
    )


def downgrade() -> None:
    op.drop_table("verification", schema=SCHEMA)
