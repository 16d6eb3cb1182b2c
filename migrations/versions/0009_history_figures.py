"""Note whether a person may have several rows; do not try to compress hashes."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"


def upgrade() -> None:
    op.add_column(
        "history",
        sa.Column("several", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        schema=SCHEMA,
    )
    for column in ("persons", "classes"):
        op.execute(f"ALTER TABLE {SCHEMA}.history_member ALTER {column} SET STORAGE EXTERNAL")


def downgrade() -> None:
    for column in ("persons", "classes"):
        op.execute(f"ALTER TABLE {SCHEMA}.history_member ALTER {column} SET STORAGE EXTENDED")
    op.drop_column("history", "several", schema=SCHEMA)
