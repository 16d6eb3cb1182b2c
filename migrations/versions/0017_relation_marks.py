"""Store what identifies a relation since it was created, and the counts of the last refresh."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE dbanon.release ADD COLUMN relation_mark text, ADD COLUMN growth json;
"""


def upgrade() -> None:
    op.execute(COLUMNS)
