"""Store who approved which version of a policy, and which version a release was published by."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

APPROVALS = """
CREATE TABLE dbanon.policy_approval (
    table_schema text NOT NULL,
    table_name text NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    digest text NOT NULL,
    approved_at timestamp with time zone DEFAULT now() NOT NULL,
    approved_by text DEFAULT session_user NOT NULL,
    PRIMARY KEY (table_schema, table_name, name, version, digest, approved_by)
);
COMMENT ON TABLE dbanon.policy_approval IS
    'Who approved which version of a policy, with which taxonomies.';
"""

DEMAND = """
CREATE TABLE dbanon.approval_demand (
    is_only boolean DEFAULT true PRIMARY KEY,
    demanded_at timestamp with time zone DEFAULT now() NOT NULL,
    demanded_by text DEFAULT session_user NOT NULL,
    CONSTRAINT approval_demand_is_only_check CHECK (is_only)
);
COMMENT ON TABLE dbanon.approval_demand IS
    'Its row demands that a policy is approved before it publishes.';
"""

VERSION = """
ALTER TABLE dbanon.release ADD COLUMN policy_version integer;
"""


def upgrade() -> None:
    op.execute(APPROVALS)
    op.execute(DEMAND)
    op.execute(VERSION)
