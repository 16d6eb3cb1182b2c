"""Tell series of releases apart: what one shows is read by others than those of the others."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"


def upgrade() -> None:
    series = sa.Column("series", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
    op.add_column("history", series, schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("history", "series", schema=SCHEMA)
