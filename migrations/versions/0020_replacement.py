"""Store the made-up words that are published instead of direct identifiers."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

WORDS = """
CREATE TABLE dbanon.replacement (
    key_id uuid NOT NULL,
    kind text NOT NULL,
    words jsonb NOT NULL,
    PRIMARY KEY (key_id, kind)
);
COMMENT ON TABLE dbanon.replacement IS
    'The made-up words that releases of a key publish instead of direct identifiers.';
"""


def upgrade() -> None:
    op.execute(WORDS)
