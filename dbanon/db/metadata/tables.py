"""The metadata tables of the schema ``dbanon``, for Alembic; statements are in ``sql``."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, OID, UUID

from dbanon.db.schemas import SCHEMA

metadata = sa.MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    },
)

_now = sa.text("now()")

taxonomy = sa.Table(
    "taxonomy",
    metadata,
    sa.Column("taxonomy_id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("n_leaves", sa.Integer, nullable=False),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.UniqueConstraint("name", "version"),
    sa.CheckConstraint("version >= 1", name="taxonomy_taxonomy_version_check_check"),
    comment="A version of the tree above the values of a column.",
)

taxonomy_node = sa.Table(
    "taxonomy_node",
    metadata,
    sa.Column(
        "taxonomy_id",
        sa.BigInteger,
        sa.ForeignKey(f"{SCHEMA}.taxonomy.taxonomy_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("node_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("parent_id", sa.Integer),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("leaf_lo", sa.Integer, nullable=False),
    sa.Column("leaf_hi", sa.Integer, nullable=False),
    sa.CheckConstraint(
        "(parent_id IS NULL) = (node_id = 0)", name="taxonomy_node_taxonomy_node_root_check_check"
    ),
    sa.CheckConstraint("leaf_lo <= leaf_hi", name="taxonomy_node_taxonomy_node_leaves_check_check"),
    comment="The nodes of a taxonomy in depth-first preorder, with their interval of leaves.",
)

policy = sa.Table(
    "policy",
    metadata,
    sa.Column("table_schema", sa.Text, primary_key=True),
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("document", JSONB, nullable=False),
    sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("baseline", JSONB),
    sa.Column("name", sa.Text, primary_key=True, server_default="default"),
    comment="What to publish of a table, and what must hold of it.",
)

policy_version = sa.Table(
    "policy_version",
    metadata,
    sa.Column("table_schema", sa.Text, primary_key=True),
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("document", JSONB),
    sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("stored_by", sa.Text, server_default=sa.text("session_user")),
    comment="Every policy that was ever stored; one without a document was dropped.",
)

policy_approval = sa.Table(
    "policy_approval",
    metadata,
    sa.Column("table_schema", sa.Text, primary_key=True),
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("approved_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("approved_by", sa.Text, primary_key=True, server_default=sa.text("session_user")),
    comment="Who approved which version of a policy, with which taxonomies.",
)

approval_demand = sa.Table(
    "approval_demand",
    metadata,
    sa.Column("is_only", sa.Boolean, primary_key=True, server_default=sa.text("true")),
    sa.Column("demanded_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("demanded_by", sa.Text, nullable=False, server_default=sa.text("session_user")),
    sa.CheckConstraint("is_only", name="approval_demand_is_only_check"),
    comment="Its row demands that a policy is approved before it publishes.",
)

release = sa.Table(
    "release",
    metadata,
    sa.Column("release_id", sa.BigInteger, sa.Identity(always=False), primary_key=True),
    sa.Column("table_schema", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("relation_schema", sa.Text, nullable=False),
    sa.Column("relation_name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("policy", JSONB, nullable=False),
    sa.Column("overrides", JSONB, nullable=False),
    sa.Column("taxonomies", JSONB, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    # json, not jsonb: it keeps the order of the columns.
    sa.Column("checks", sa.JSON, nullable=False),
    sa.Column("loss", sa.JSON, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("served", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("created_by", sa.Text, nullable=False, server_default=sa.text("session_user")),
    sa.Column("content", sa.Text),
    sa.Column("data_id", sa.BigInteger, nullable=False),
    sa.Column("compared", sa.Text),
    sa.Column("relation_mark", sa.Text),
    sa.Column("growth", sa.JSON),
    sa.Column("source_state", JSONB),
    sa.Column("policy_version", sa.Integer),
    sa.CheckConstraint("kind IN ('table', 'view')", name="release_release_kind_check_check"),
    sa.Index(
        "release_served_key",
        "relation_schema",
        "relation_name",
        unique=True,
        postgresql_where=sa.text("served"),
    ),
    comment="The ledger: every release, what was proved of it, and whether it is served now.",
)

# Two random UUIDs make 244 random bits, and the server that makes them sends them to no log.
NEW_KEY = "sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))"

sampling_key = sa.Table(
    "sampling_key",
    metadata,
    sa.Column("is_only", sa.Boolean, primary_key=True, server_default=sa.text("true")),
    sa.Column("key", sa.LargeBinary, nullable=False, server_default=sa.text(NEW_KEY)),
    sa.CheckConstraint("is_only", name="sampling_key_sampling_key_is_only_check_check"),
    comment="The secret by which the persons of samples are drawn.",
)

publishing = sa.Table(
    "publishing",
    metadata,
    sa.Column("source", OID, primary_key=True, autoincrement=False),
    sa.Column("turns", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    comment="A row for each table that was ever published, locked while it is.",
)

verification = sa.Table(
    "verification",
    metadata,
    sa.Column("verification_id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column(
        "release_id",
        sa.BigInteger,
        sa.ForeignKey(f"{SCHEMA}.release.release_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("results", sa.JSON, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("verified_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("verified_by", sa.Text, nullable=False, server_default=sa.text("session_user")),
    sa.CheckConstraint(
        "verdict IN ('passed', 'failed', 'not checked')", name="verification_verdict_check"
    ),
    comment="The ledger's later pages: every check of a served release, and what it found.",
)

history_key = sa.Table(
    "history_key",
    metadata,
    sa.Column("key_id", UUID, primary_key=True, server_default=sa.text("gen_random_uuid()")),
    sa.Column("inner_key", sa.LargeBinary, nullable=False),
    sa.Column("outer_key", sa.LargeBinary, nullable=False),
    comment="The secret keys of the hashes that persons are remembered by (SHA-256).",
)

replacement = sa.Table(
    "replacement",
    metadata,
    sa.Column("key_id", UUID, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("words", JSONB, nullable=False),
    comment="The made-up words that releases of a key publish instead of direct identifiers.",
)

history = sa.Table(
    "history",
    metadata,
    sa.Column("release_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("table_schema", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("relation_schema", sa.Text, nullable=False),
    sa.Column("relation_name", sa.Text, nullable=False),
    sa.Column("person", ARRAY(sa.Text), nullable=False),
    sa.Column("key_id", UUID, nullable=False),
    sa.Column("series", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("several", sa.Boolean, nullable=False, server_default=sa.text("true")),
    sa.Column("forgotten_at", sa.DateTime(timezone=True)),
    comment="The releases whose persons are remembered, and by which columns these are told.",
)

history_class = sa.Table(
    "history_class",
    metadata,
    sa.Column("release_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("classes", ARRAY(sa.BigInteger), nullable=False),
    sa.Column("value_ids", ARRAY(sa.Integer), nullable=False),
    sa.Column("persons", ARRAY(sa.Integer), nullable=False),
    comment="The number of persons with each value in each class of the first release of a series.",
)

history_figures = sa.Table(
    "history_figures",
    metadata,
    sa.Column("release_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("figures", JSONB, nullable=False),
    comment="What comparing a release with those before found, from which the next one starts.",
)

history_member = sa.Table(
    "history_member",
    metadata,
    sa.Column("release_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("persons", ARRAY(UUID), nullable=False),
    sa.Column("classes", ARRAY(sa.BigInteger), nullable=False),
    sa.Column("value_ids", ARRAY(sa.Integer), nullable=False),
    comment="The persons whose class or values are others than in the release before.",
)

history_leaver = sa.Table(
    "history_leaver",
    metadata,
    sa.Column("relation_schema", sa.Text, primary_key=True),
    sa.Column("relation_name", sa.Text, primary_key=True),
    sa.Column("missed_at", sa.DateTime(timezone=True), primary_key=True),
    sa.Column("persons", ARRAY(UUID), nullable=False),
    comment="Those whom a relation shows though they are gone, and which refresh missed them.",
)

history_pool = sa.Table(
    "history_pool",
    metadata,
    sa.Column("relation_schema", sa.Text, primary_key=True),
    sa.Column("relation_name", sa.Text, primary_key=True),
    sa.Column("persons", sa.BigInteger, nullable=False),
    sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("kept", sa.Text, primary_key=True, server_default="{}"),
    comment="The last pools of new persons of a relation that did not meet the models as a whole.",
)

history_value = sa.Table(
    "history_value",
    metadata,
    sa.Column("value_id", sa.Integer, sa.Identity(always=True), primary_key=True),
    sa.Column("table_schema", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("value", JSONB, nullable=False),
    sa.UniqueConstraint("table_schema", "table_name", "digest"),
    comment="The sensitive values that were published of a table, each combination once.",
)

spending = sa.Table(
    "spending",
    metadata,
    sa.Column("spending_id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("table_oid", OID, nullable=False),
    sa.Column("table_schema", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("epsilon", sa.Numeric, nullable=False),
    sa.Column("columns", ARRAY(sa.Text), nullable=False),
    sa.Column("spent_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("spent_by", sa.Text, nullable=False, server_default=sa.text("session_user")),
    sa.Column("number", sa.BigInteger),
    sa.CheckConstraint("epsilon > 0", name="spending_spending_epsilon_check_check"),
    comment="What counts with noise have spent, of the budget that the policy of a table has.",
)

account = sa.Table(
    "account",
    metadata,
    sa.Column("table_schema", sa.Text, primary_key=True),
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("table_oid", OID, nullable=False),
    sa.Column("entries", sa.BigInteger, nullable=False),
    comment="How many entries spending has of a table, so that none is lost unnoticed.",
)

schedule = sa.Table(
    "schedule",
    metadata,
    sa.Column("table_schema", sa.Text, primary_key=True),
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("cron", sa.Text, nullable=False),
    sa.Column("zone", sa.Text, nullable=False),
    sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("stored_by", sa.Text, nullable=False, server_default=sa.text("session_user")),
    sa.CheckConstraint(
        "stored_at BETWEEN '1970-01-01 00:00:00+00' AND '9000-01-01 00:00:00+00'",
        name="schedule_times_check",
    ),
    comment="When tables are refreshed, by cron expressions.",
)

job = sa.Table(
    "job",
    metadata,
    sa.Column("job_id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("table_schema", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("due_at", sa.DateTime(timezone=True)),
    sa.Column("state", sa.Text, nullable=False, server_default="waiting"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("entered_at", sa.DateTime(timezone=True), nullable=False, server_default=_now),
    sa.Column("not_before", sa.DateTime(timezone=True)),
    sa.Column("begun_at", sa.DateTime(timezone=True)),
    sa.Column("begun_after", sa.BigInteger),
    sa.Column("ended_at", sa.DateTime(timezone=True)),
    sa.Column("result", sa.Text),
    sa.Column("reason", sa.Text),
    sa.CheckConstraint(
        "state IN ('waiting', 'running', 'done', 'failed')", name="job_job_state_check_check"
    ),
    sa.CheckConstraint("attempts BETWEEN 0 AND 100", name="job_attempts_check"),
    sa.CheckConstraint(
        "least(due_at, entered_at, not_before, begun_at, ended_at) >= '1970-01-01 00:00:00+00'"
        " AND greatest(due_at, entered_at, not_before, begun_at, ended_at)"
        " <= '9000-01-01 00:00:00+00'",
        name="job_times_check",
    ),
    sa.UniqueConstraint("table_schema", "table_name", "due_at"),
    sa.Index(
        "job_waiting_key",
        "table_schema",
        "table_name",
        unique=True,
        postgresql_where=sa.text("state = 'waiting'"),
    ),
    comment="The refreshes that workers are to do, are doing and have done.",
)
