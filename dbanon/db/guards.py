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
    from dbanon.domain.table import TableInfo

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


_FENCE = "fence"


def guard(release_id: int, event: str) -> sql.Identifier:
    """Name the trigger function of one event."""
    return sql.Identifier(DATA_SCHEMA, f"guard_{release_id}_{event}")


def trigger_names(release_id: int) -> list[str]:
    """Name the triggers of a live view, every one of which it needs."""
    return [_trigger(release_id, event) for event in (*_EVENTS, _FENCE)]


def _trigger(release_id: int, event: str) -> str:
    return f"dbanon_guard_{release_id}_{event}"


def guard_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the keys, functions and triggers of a live view."""
    keys = [sql.Identifier(name) for name in publication.key_columns]
    classes = identifiers((f"q{i}" for i, _ in enumerate(publication.recodings, 1)), of="g")
    for name in ("merge_rows", "merge_groups"):
        yield template(name, rows=publication.rows, groups=publication.groups, columns=classes)
    yield sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({})").format(
        publication.rows, sql.SQL(", ").join(keys)
    )
    yield sql.SQL("CREATE INDEX ON {} (group_id)").format(publication.rows)
    yield sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (group_id)").format(publication.groups)
    for table in (publication.rows, publication.groups):
        yield sql.SQL("ANALYZE {}").format(table)
    for event, event_sql in _EVENTS.items():
        function = guard(publication.id, event)
        # A body is a literal, not dollar-quoted: a column may be named like the closing tag.
        body = sql.Literal(_body(publication, event).as_string())
        yield template("create_guard", guard=function, settings=_settings(publication), body=body)
        yield sql.SQL("REVOKE ALL ON FUNCTION {}() FROM PUBLIC").format(function)
        yield template(
            "create_trigger",
            trigger=sql.Identifier(_trigger(publication.id, event)),
            event=event_sql,
            source=publication.source,
            transition=_TRANSITIONS[event],
            guard=function,
        )
    yield template(
        "create_fence",
        trigger=sql.Identifier(_trigger(publication.id, _FENCE)),
        source=publication.source,
        guard=guard(publication.id, "delete"),
    )
    for name in trigger_names(publication.id):
        # ALWAYS: replicated changes reach the source without firing ordinary triggers.
        enable = sql.SQL("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}")
        yield enable.format(publication.source, sql.Identifier(name))


def drop_guards(session: Session, release_id: int) -> None:
    """Remove functions and triggers; dropping a function takes its trigger along."""
    for event in _EVENTS:
        function = guard(release_id, event)
        session.pg.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(function))


def _body(publication: Publication, event: str) -> sql.Composed:
    if event == "truncate":
        return template("guard_truncate_body", groups=publication.groups, rows=publication.rows)
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
    row = session.pg.execute(query("is_owner"), (info.oid,)).fetchone()
    if row is None or not row[0]:
        raise NotPermitted(
            f"guards on {info.name} can only be set by its owner",
            hint="connect as the owner, or publish with --as table",
        )
