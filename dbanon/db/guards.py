"""Triggers that keep a live view within its models while the source changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import judgements
from dbanon.db.metadata import DATA_SCHEMA
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
_FENCE, _ROUTE = "fence", "route"


def guard(release_id: int, event: str) -> sql.Identifier:
    """Name the trigger function of one event."""
    return sql.Identifier(DATA_SCHEMA, f"guard_{release_id}_{event}")


def triggers(release_id: int, source: TableInfo) -> list[tuple[int, TableName, str]]:
    """List what a live view needs: the table, by OID and name, and the name of its trigger.

    A statement fires the triggers of the table that it names, and of no other, so that every
    partition has them all.
    """
    tables = [(part.oid, part.name) for part in source.partitions] or [(source.oid, source.name)]
    found = [(*table, _trigger(release_id, event)) for table in tables for event in _EVENTS]
    if not source.partitions:
        return [*found, (source.oid, source.name, _trigger(release_id, _FENCE))]
    route = _trigger(release_id, _ROUTE)
    return [*found, *((leaf.oid, leaf.name, route) for leaf in source.leaves)]


def _trigger(release_id: int, event: str) -> str:
    return f"dbanon_guard_{release_id}_{event}"


def guard_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the keys, functions and triggers of a live view."""
    yield from _finish_tables(publication)
    tables = [part.name for part in publication.info.partitions] or [publication.info.name]
    for event, event_sql in _EVENTS.items():
        function = guard(publication.id, event)
        yield from _create(publication, event)
        for table in tables:
            yield template(
                "create_trigger",
                trigger=sql.Identifier(_trigger(publication.id, event)),
                event=event_sql,
                source=relation(table),
                transition=_TRANSITIONS[event],
                guard=function,
            )
    yield from _hierarchy_statements(publication)
    for _, table, name in triggers(publication.id, publication.info):
        # ALWAYS: replicated changes reach the source without firing ordinary triggers.
        enable = sql.SQL("ALTER TABLE ONLY {} ENABLE ALWAYS TRIGGER {}")
        yield enable.format(relation(table), sql.Identifier(name))


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
    # A body is a literal, not dollar-quoted: a column may be named like the closing tag.
    function, body = guard(publication.id, event), _body(publication, event).as_string()
    yield template(
        "create_guard", guard=function, settings=_settings(publication), body=sql.Literal(body)
    )
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
    for event in (*_EVENTS, _ROUTE):
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
    keys = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(key, sql.Identifier(name))
        for name, key in zip(publication.key_columns, publication.keys(of="t"), strict=True)
    )
    if event == "delete":
        return sql.SQL("SELECT {} FROM removed AS t").format(keys)
    others = sql.SQL("").join(
        sql.SQL(", t.{} AS {}").format(sql.Identifier(name), sql.Identifier(f"v{i}"))
        for i, name in enumerate(columns, 1)
    )
    return sql.SQL("SELECT {0}{1} FROM removed AS t EXCEPT SELECT {0}{1} FROM added AS t").format(
        keys, others
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
    tables = [(part.oid, part.name) for part in info.partitions] or [(info.oid, info.name)]
    for oid, name in tables:
        row = session.pg.execute(query("is_owner"), (oid,)).fetchone()
        if row is None or not row[0]:
            raise NotPermitted(
                f"guards on {name} can only be set by its owner",
                hint="connect as the owner, or publish with --as table",
            )
