"""Hash persons with new keys once, which an earlier program, that hashes twice, cannot continue."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

KEYS = """
COMMENT ON TABLE dbanon.history_key IS
    'The secret keys of the hashes that persons are remembered by (SHA-256).';
"""

# To compress some 40 KB of each part takes longer than to write them.
VALUES = """
ALTER TABLE dbanon.history_member ALTER COLUMN value_ids SET STORAGE EXTERNAL;
"""


def upgrade() -> None:
    op.execute(KEYS)
    op.execute(VALUES)
