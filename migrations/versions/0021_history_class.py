"""Store how many persons have each value in each class; rename a count of growth."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

CLASSES = """
CREATE TABLE dbanon.history_class (
    release_id bigint PRIMARY KEY,
    classes bigint[] NOT NULL,
    value_ids integer[] NOT NULL,
    persons integer[] NOT NULL
);
ALTER TABLE dbanon.history_class
    ALTER COLUMN classes SET STORAGE EXTERNAL;
COMMENT ON TABLE dbanon.history_class IS
    'The number of persons with each value in each class of the first release of a series.';
"""

INSERTED = """
UPDATE dbanon.release
   SET growth = (growth::jsonb - 'births'
                 || jsonb_build_object('inserted', growth -> 'births'))::json
 WHERE growth -> 'births' IS NOT NULL
"""


def upgrade() -> None:
    op.execute(CLASSES)
    op.execute(INSERTED)
