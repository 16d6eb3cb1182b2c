"""Remember pools of new persons that did not meet the models as a whole."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

POOLS = """
CREATE TABLE dbanon.history_pool (
    relation_schema text NOT NULL,
    relation_name text NOT NULL,
    persons bigint NOT NULL,
    failed_at timestamptz DEFAULT now() NOT NULL,
    PRIMARY KEY (relation_schema, relation_name)
);
COMMENT ON TABLE dbanon.history_pool IS
    'The last pool of new persons of a relation, if it did not meet the models as a whole.';
"""


def upgrade() -> None:
    op.execute(POOLS)
