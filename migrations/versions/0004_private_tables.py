"""Let releases share private tables."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"


def upgrade() -> None:
    op.add_column("release", sa.Column("data_id", sa.BigInteger(), nullable=True), schema=SCHEMA)
    op.execute("UPDATE dbanon.release SET data_id = release_id")
    op.alter_column("release", "data_id", nullable=False, schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("release", "data_id", schema=SCHEMA)
