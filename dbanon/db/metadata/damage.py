"""Find and repair missing parts of the metadata schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dbanon.db.metadata import ledger, spending
from dbanon.db.models import functions
from dbanon.db.queries import query
from dbanon.db.schemas import DATA_SCHEMA, SCHEMA
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.session import Session

# The columns of each table; what those marked ! held cannot be replaced. Tests compare them with
# ``tables``, which needs SQLAlchemy.
TABLES = {
    "account": "table_schema! table_name! table_oid! entries!",
    "approval_demand": "is_only! demanded_at demanded_by",
    "history": "release_id! table_schema! table_name! relation_schema! relation_name! person!"
    " key_id! series several forgotten_at",
    "history_class": "release_id! classes! value_ids! persons!",
    "history_figures": "release_id! figures!",
    "history_key": "key_id! inner_key! outer_key!",
    "history_leaver": "relation_schema! relation_name! missed_at! persons!",
    "history_member": "release_id! part! persons! classes! value_ids!",
    "history_pool": "relation_schema! relation_name! persons! failed_at kept!",
    "history_value": "value_id! table_schema! table_name! digest! value!",
    "job": "job_id! table_schema! table_name! due_at state attempts entered_at not_before begun_at"
    " begun_after ended_at result reason",
    "policy": "table_schema! table_name! document! updated_at baseline name!",
    "policy_approval": "table_schema! table_name! name! version! digest! approved_at approved_by!",
    "policy_version": "table_schema! table_name! name! version! document stored_at stored_by",
    "publishing": "source! turns",
    "release": "release_id! table_schema! table_name! relation_schema! relation_name! kind! policy!"
    " overrides! taxonomies! seed! checks! loss! fingerprint! served! created_at created_by content"
    " data_id! compared relation_mark growth source_state policy_version",
    "replacement": "key_id! kind! words!",
    "sampling_key": "is_only! key",
    "schedule": "table_schema! table_name! cron! zone! stored_at stored_by",
    "spending": "spending_id! table_oid! table_schema! table_name! epsilon! columns! spent_at"
    " spent_by number",
    "taxonomy": "taxonomy_id! name! version! n_leaves! height! created_at",
    "taxonomy_node": "taxonomy_id! node_id! label! parent_id depth! leaf_lo! leaf_hi!",
    "verification": "verification_id! release_id! verdict! results! reason verified_at verified_by",
}


class Missing(NamedTuple):
    """A missing part; not mendable if its contents are lost."""

    kind: str
    name: str
    mendable: bool = True

    def __str__(self) -> str:
        """Describe the missing part."""
        where = "" if self.kind == "schema" else f"{SCHEMA}."
        return f"the {self.kind} {where}{self.name} is gone"


def missing(session: Session) -> list[Missing]:
    """Return the missing schemas, tables, columns and functions."""
    found = set(map(tuple, session.pg.execute(query("metadata.parts")).fetchall()))
    return [part for part in _parts(found) if (part.kind, part.name) not in found]


def _parts(found: set[tuple[str, ...]]) -> Iterator[Missing]:
    for schema in (SCHEMA, DATA_SCHEMA):
        yield Missing("schema", schema)
    for table, columns in TABLES.items():
        yield Missing("table", table)
        if ("table", table) in found:
            for column in columns.split():
                name = f"{table}.{column.removesuffix('!')}"
                yield Missing("column", name, mendable=not column.endswith("!"))
    for name in functions.names():
        yield Missing("function", name)


def lost_accounts(session: Session) -> list[str]:
    """Describe the tables with unknown spending of their privacy budget."""
    return [
        f"the spent budget of {table} is lost: restore {SCHEMA}.spending"
        for table in spending.unknown(session)
    ]


def foreign_triggers(session: Session) -> list[tuple[str, TableName, TableName]]:
    """Return name, table and function of other roles' triggers that call dbanon's functions."""
    rows = session.pg.execute(query("metadata.foreign_triggers")).fetchall()
    return [
        (trigger, TableName(schema, table), TableName(SCHEMA, function))
        for trigger, schema, table, function in rows
    ]


def views_of_data(session: Session) -> list[tuple[TableName, int]]:
    """Return the views of release data, each with the number of the data."""
    rows = session.pg.execute(query("metadata.views_of_data")).fetchall()
    return [(TableName(schema, name), data_id) for schema, name, data_id in rows]


def unrecorded_views(session: Session) -> list[TableName]:
    """Return the views of release data that the ledger does not have."""
    found = views_of_data(session)
    return [view for view, data_id in found if ledger.release_by_id(session, data_id) is None]
