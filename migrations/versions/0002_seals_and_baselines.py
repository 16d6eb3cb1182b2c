"""Remember what was published, and what the table looked like."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SCHEMA = "dbanon"


def upgrade() -> None:
    op.add_column("release", sa.Column("content", sa.Text(), nullable=True), schema=SCHEMA)
    op.add_column("policy", sa.Column("baseline", JSONB(), nullable=True), schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("policy", "baseline", schema=SCHEMA)
    op.drop_column("release", "content", schema=SCHEMA)
