"""Remember failed pools of new persons by their kept values."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

KEPT = """
ALTER TABLE dbanon.history_pool
    ADD COLUMN kept text DEFAULT '{}' NOT NULL,
    DROP CONSTRAINT history_pool_pkey,
    ADD PRIMARY KEY (relation_schema, relation_name, kept);
COMMENT ON TABLE dbanon.history_pool IS
    'The last pools of new persons of a relation that did not meet the models as a whole.';
"""


def upgrade() -> None:
    op.execute(KEPT)
