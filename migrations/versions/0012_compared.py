"""Note with which rows a refresh found nothing to publish, so that they are compared once."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"


def upgrade() -> None:
    op.add_column("release", sa.Column("compared", sa.Text()), schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("release", "compared", schema=SCHEMA)
