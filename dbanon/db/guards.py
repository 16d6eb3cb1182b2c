"""Triggers that keep a live view within its models while the source changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db import judgements
from dbanon.db.metadata import DATA_SCHEMA
from dbanon.db.printing import Body
from dbanon.db.queries import identifiers, query, relation, template
from dbanon.db.session import VALUE_SETTINGS
from dbanon.domain.errors import NotPermitted
from dbanon.domain.policy import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.db.relations import Publication
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo, TableName

_EVENTS = {
    "delete": sql.SQL("DELETE"),
    "update": sql.SQL("UPDATE"),
    "truncate": sql.SQL("TRUNCATE"),
}
_TRANSITIONS = {
    "delete": sql.SQL("REFERENCING OLD TABLE AS removed"),
    "update": sql.SQL("REFERENCING OLD TABLE AS removed NEW TABLE AS added"),
    "truncate": sql.SQL(""),
}
_ROW_EVENTS = {"row_delete": sql.SQL("DELETE"), "row_update": sql.SQL("UPDATE")}
_REMOVED, _ADDED = sql.SQL("removed"), sql.SQL("added")
_OLD, _NEW = sql.SQL("(SELECT OLD.*)"), sql.SQL("(SELECT NEW.*)")
_FENCE, _ROUTE = "fence", "route"
_ALWAYS, _REPLICA = "ALWAYS", "REPLICA"


class Armed(NamedTuple):
    """A trigger that a live view needs: its table, by OID and name, its name, and when it fires."""

    oid: int
    table: TableName
    name: str
    mode: str


def guard(release_id: int, event: str) -> sql.Identifier:
    """Name the trigger function of one event."""
    return sql.Identifier(DATA_SCHEMA, f"guard_{release_id}_{event}")


def triggers(release_id: int, source: TableInfo) -> list[Armed]:
    """List the triggers that a live view needs.

    A statement fires the triggers of the table that it names, and of no other, so that every
    partition has them all. ALWAYS: they fire in a session that replicates, too. But what logical
    replication applies is no statement; the triggers for its rows are idle everywhere else.
    """
    tables = _tables(source)
    rows = [(leaf.oid, leaf.name) for leaf in source.leaves] or tables
    wanted = [(table, event, _ALWAYS) for table in tables for event in _EVENTS]
    wanted += [(table, event, _REPLICA) for table in rows for event in _ROW_EVENTS]
    fence = _ROUTE if source.partitions else _FENCE
    wanted += [(table, fence, _ALWAYS) for table in rows]
    return [Armed(*table, _trigger(release_id, event), mode) for table, event, mode in wanted]


def _tables(source: TableInfo) -> list[tuple[int, TableName]]:
    return [(part.oid, part.name) for part in source.partitions] or [(source.oid, source.name)]


def _trigger(release_id: int, event: str) -> str:
    return f"dbanon_guard_{release_id}_{event}"


def guard_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the keys, functions and triggers of a live view."""
    yield from _finish_tables(publication)
    for event, event_sql in {**_EVENTS, **_ROW_EVENTS}.items():
        yield from _create(publication, event)
        of_rows = event in _ROW_EVENTS
        leaves = [leaf.name for leaf in publication.info.leaves]
        tables = [name for _, name in _tables(publication.info)]
        for table in leaves or tables if of_rows else tables:
            yield template(
                "create_row_trigger" if of_rows else "create_trigger",
                trigger=sql.Identifier(_trigger(publication.id, event)),
                event=event_sql,
                source=relation(table),
                transition=_TRANSITIONS.get(event, sql.SQL("")),
                guard=guard(publication.id, event),
            )
    yield from _hierarchy_statements(publication)
    for _, table, name, mode in triggers(publication.id, publication.info):
        enable = sql.SQL("ALTER TABLE ONLY {} ENABLE {} TRIGGER {}")
        yield enable.format(relation(table), sql.SQL(mode), sql.Identifier(name))


def _finish_tables(publication: Publication) -> Iterator[sql.Composed]:
    rows, groups = publication.rows, publication.groups
    classes = identifiers((f"q{i}" for i, _ in enumerate(publication.recodings, 1)), of="g")
    for name in ("merge_rows", "merge_groups"):
        yield template(name, rows=rows, groups=groups, columns=classes)
    for number, leaf in publication.numbered_leaves:
        yield template(
            "place_rows",
            rows=rows,
            leaf=sql.Literal(number),
            source=relation(leaf.name),
            join=publication.join,
        )
    keys = identifiers(publication.key_columns)
    yield sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({})").format(rows, keys)
    yield sql.SQL("CREATE INDEX ON {} (group_id)").format(rows)
    yield sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (group_id)").format(groups)
    for table in (rows, groups):
        yield sql.SQL("ANALYZE {}").format(table)


def _create(publication: Publication, event: str) -> Iterator[sql.Composed]:
    function, body = guard(publication.id, event), Body(_body(publication, event))
    yield template("create_guard", guard=function, settings=_settings(publication), body=body)
    yield sql.SQL("REVOKE ALL ON FUNCTION {}() FROM PUBLIC").format(function)


def _hierarchy_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield what keeps writers from ways to the rows that no guard stands on."""
    if not publication.info.partitions:
        yield template(
            "create_fence",
            trigger=sql.Identifier(_trigger(publication.id, _FENCE)),
            source=publication.source,
            guard=guard(publication.id, "delete"),
        )
        return
    yield from _create(publication, _ROUTE)
    for leaf in publication.info.leaves:
        ancestors = "{" + ",".join(map(str, leaf.ancestors)) + "}"
        yield template(
            "create_route",
            trigger=sql.Identifier(_trigger(publication.id, _ROUTE)),
            source=relation(leaf.name),
            guard=guard(publication.id, _ROUTE),
            ancestors=sql.Literal(ancestors),
        )


def drop_guards(session: Session, release_id: int) -> None:
    """Remove functions and triggers; dropping a function takes its triggers along."""
    for event in (*_EVENTS, *_ROW_EVENTS, _ROUTE):
        function = guard(release_id, event)
        session.pg.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(function))


def _body(publication: Publication, event: str) -> sql.Composed:
    if event == "truncate":
        return template("guard_truncate_body", groups=publication.groups, rows=publication.rows)
    if event == _ROUTE:
        return template("guard_route_body", groups=publication.groups)
    policy = publication.policy
    whose = [rule.column for rule in policy.with_role(Role.QUASI)]
    if policy.subject is not None:
        whose.append(policy.subject)
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    changed_is_row = sql.SQL(" AND ").join(
        sql.SQL("r.{0} = c.{0}").format(sql.Identifier(name)) for name in publication.key_columns
    )
    members = publication.members(judgements.watched(publication))
    return template(
        "guard_body",
        rows=publication.rows,
        groups=publication.groups,
        changed=_changed(publication, [*whose, *sensitive], event),
        moved=_changed(publication, whose, event),
        changed_is_row=changed_is_row,
        members=members,
        holds=judgements.plain_conditions(publication),
        models=sql.SQL("").join(judgements.model_blocks(publication, members)),
    )


def _changed(publication: Publication, columns: Sequence[str], event: str) -> sql.Composed:
    """Select the keys of old rows that are gone, or differ now in one of the columns."""
    removed, added = (_OLD, _NEW) if event in _ROW_EVENTS else (_REMOVED, _ADDED)
    keys = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(key, sql.Identifier(name))
        for name, key in zip(publication.key_columns, publication.keys(of="t"), strict=True)
    )
    if event.endswith("delete"):
        return sql.SQL("SELECT {} FROM {} AS t").format(keys, removed)
    others = sql.SQL("").join(
        sql.SQL(", t.{} AS {}").format(sql.Identifier(name), sql.Identifier(f"v{i}"))
        for i, name in enumerate(columns, 1)
    )
    return sql.SQL("SELECT {0}{1} FROM {2} AS t EXCEPT SELECT {0}{1} FROM {3} AS t").format(
        keys, others, removed, added
    )


def _settings(publication: Publication) -> sql.Composed:
    """Spell values in a guard as the proof does, whatever the writer's session is set to."""
    if not judgements.depends_on_settings(publication):
        return sql.Composed([])
    return sql.SQL("\n").join(map(sql.SQL, VALUE_SETTINGS))


def lock_source(session: Session, source: TableInfo, *, exclude_writers: bool) -> None:
    """Keep the columns as they are, as the first statement of a transaction.

    With ``exclude_writers`` the rows too, until the guards stand. LOCK takes no snapshot: what is
    read after it includes everything that was committed before.
    """
    if source.relkind not in {"r", "p"}:
        return  # only tables can be locked, and nothing else is published
    mode = "SHARE ROW EXCLUSIVE" if exclude_writers else "ACCESS SHARE"
    statement = sql.SQL("LOCK TABLE {} IN {} MODE")
    session.pg.execute(statement.format(relation(source.name), sql.SQL(mode)))


def require_owner(session: Session, info: TableInfo) -> None:
    """Raise NotPermitted unless the role owns the source, as guards on it demand."""
    for oid, name in _tables(info):
        row = session.pg.execute(query("is_owner"), (oid,)).fetchone()
        if row is None or not row[0]:
            raise NotPermitted(
                f"guards on {name} can only be set by its owner",
                hint="connect as the owner, or publish with --as table",
            )
