"""Store how a source was when a release was last compared with it."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE dbanon.release ADD COLUMN source_state jsonb;
"""


def upgrade() -> None:
    op.execute(COLUMNS)
