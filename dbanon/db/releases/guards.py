"""Triggers that check a live view when its source changes, and the fingerprint of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db.models.functions import TYPES, arithmetic, demands, fails
from dbanon.db.queries import Body, equal_text, identifiers, query, relation, template
from dbanon.db.releases.publication import private_statement
from dbanon.db.schemas import DATA_SCHEMA
from dbanon.db.session import VALUE_SETTINGS
from dbanon.domain.errors import NotPermitted
from dbanon.domain.policy import Role
from dbanon.formats.finders import UntrackedRows
from dbanon.formats.support import Mode, require
from dbanon.models.base import Reads
from dbanon.models.registry import MODELS, arguments, is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.db.models.functions import Demand
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import ModelSpec
    from dbanon.domain.release import Entry
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
# As pg_trigger has them: 1 for each row, 8 DELETE, 16 UPDATE, 32 TRUNCATE.
_TYPES = {"delete": 8, "update": 16, "truncate": 32, "row_delete": 9, "row_update": 17, "fence": 9}
_REMOVED, _ADDED = sql.SQL("removed"), sql.SQL("added")
_OLD, _NEW = sql.SQL("(SELECT OLD.*)"), sql.SQL("(SELECT NEW.*)")
_FENCE, _ROUTE = "fence", "route"
_ALWAYS, _REPLICA = "ALWAYS", "REPLICA"


class Armed(NamedTuple):
    """A trigger of a live view: OID and name of its table, its own name, and when it fires."""

    oid: int
    table: TableName
    name: str
    mode: str


def guard(release_id: int, event: str) -> sql.Identifier:
    """Name the trigger function of one event."""
    return sql.Identifier(DATA_SCHEMA, f"guard_{release_id}_{event}")


def triggers(release_id: int, source: TableInfo) -> list[Armed]:
    """List the triggers that a live view needs.

    A statement fires only the triggers of the table that it names, so every partition has all of
    them. ALWAYS triggers also fire in a session in replication mode. Logical replication applies
    rows without a statement: the REPLICA row triggers fire for these only.
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
    """Yield the statements that create the keys, functions and triggers of a live view."""
    yield from class_statements(publication)
    yield from _key_statements(publication)
    yield from function_statements(publication)
    for event, event_sql in {**_EVENTS, **_ROW_EVENTS}.items():
        of_rows = event in _ROW_EVENTS
        leaves = [leaf.name for leaf in publication.info.leaves]
        tables = [name for _, name in _tables(publication.info)]
        for table in leaves or tables if of_rows else tables:
            yield template(
                "guards.create_row_trigger" if of_rows else "guards.create_trigger",
                trigger=sql.Identifier(_trigger(publication.data_id, event)),
                event=event_sql,
                source=relation(table),
                transition=_TRANSITIONS.get(event, sql.SQL("")),
                guard=guard(publication.data_id, event),
            )
    yield from _hierarchy_statements(publication)
    for _, table, name, mode in triggers(publication.data_id, publication.info):
        enable = sql.SQL("ALTER TABLE ONLY {} ENABLE {} TRIGGER {}")
        yield enable.format(relation(table), sql.SQL(mode), sql.Identifier(name))
    yield from mark_statements(publication)


def mark_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that store the fingerprint of the source and its guards."""
    armed = triggers(publication.data_id, publication.info)
    yield from fingerprint_statements(publication, [trigger.name for trigger in armed])


def function_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that create the trigger functions and the view that they read."""
    if publication.former is None:
        yield from members_statements(publication)
    for event in (*_EVENTS, *_ROW_EVENTS, *([_ROUTE] if publication.info.partitions else [])):
        yield from _create(publication, event)


def members_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that create the private view that the guards read."""
    yield members_statement(publication, publication.members)
    yield private_statement(relation(publication.members))


def members_statement(publication: Publication, view: TableName) -> sql.Composed:
    """Compose the view that the guards read, under its own name or another."""
    live = publication.live_members(watched(publication))
    return template("live.create_members", members=relation(view), live=live)


def class_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that merge groups into classes and store the partition of each row."""
    rows, groups = publication.rows, publication.groups
    classes = identifiers((f"q{i}" for i, _ in enumerate(publication.recodings, 1)), of="g")
    for name in ("live.merge_rows", "live.merge_groups"):
        yield template(name, rows=rows, groups=groups, columns=classes)
    if publication.info.leaves:
        yield template(
            "live.place_rows",
            rows=rows,
            leaves=sql.Literal([str(leaf.oid) for _, leaf in publication.numbered_leaves]),
            source=publication.reading,
            join=publication.join,
        )


def _key_statements(publication: Publication) -> Iterator[sql.Composed]:
    rows, groups, keys = publication.rows, publication.groups, identifiers(publication.key_columns)
    yield sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({})").format(rows, keys)
    yield sql.SQL("CREATE INDEX ON {} (group_id)").format(rows)
    yield sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (group_id)").format(groups)
    for table in (rows, groups):
        yield sql.SQL("ANALYZE {}").format(table)


def _create(publication: Publication, event: str) -> Iterator[sql.Composed]:
    function, body = guard(publication.data_id, event), Body(_body(publication, event))
    yield template(
        "guards.create_guard", guard=function, settings=_settings(publication), body=body
    )
    yield sql.SQL("REVOKE ALL ON FUNCTION {}() FROM PUBLIC").format(function)


def _hierarchy_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the triggers that stop writes to the rows through a relation without guards."""
    if not publication.info.partitions:
        yield template(
            "guards.create_fence",
            trigger=sql.Identifier(_trigger(publication.data_id, _FENCE)),
            source=publication.source,
            guard=guard(publication.data_id, "delete"),
        )
        return
    for leaf in publication.info.leaves:
        ancestors = "{" + ",".join(map(str, leaf.ancestors)) + "}"
        yield template(
            "guards.create_route",
            trigger=sql.Identifier(_trigger(publication.data_id, _ROUTE)),
            source=relation(leaf.name),
            guard=guard(publication.data_id, _ROUTE),
            ancestors=sql.Literal(ancestors),
        )


def stand(session: Session, publication: Publication) -> bool:
    """Return True if the triggers of a live view are exactly those that it needs."""
    needed = triggers(publication.data_id, publication.info)
    events = [one.name.removeprefix(_trigger(publication.data_id, "")) for one in needed]
    functions = ["delete" if event == _FENCE else event for event in events]
    asked = {
        "data_id": publication.data_id,
        "source": publication.info.oid,
        "names": [one.name for one in needed],
        "functions": [f"guard_{publication.data_id}_{function}" for function in functions],
        "types": [_TYPES[event] for event in events],
        "modes": [one.mode for one in needed],
    }
    return session.pg.execute(query("releases.kept_guards"), asked).fetchone() == (True,)


def drop_guards(session: Session, release_id: int) -> None:
    """Drop functions and triggers; dropping a function drops its triggers."""
    drop_marks(session, release_id)
    for event in (*_EVENTS, *_ROW_EVENTS, _ROUTE):
        function = guard(release_id, event)
        session.pg.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(function))


def disarm(session: Session, release_id: int) -> None:
    """Replace the guards of a release with no-ops; takes no lock on the source."""
    for event in (*_EVENTS, *_ROW_EVENTS, _ROUTE):
        function = guard(release_id, event)
        name = f"{function.as_string()}()"
        if session.one("SELECT to_regprocedure(%s)", (name,)) != (None,):
            session.pg.execute(template("guards.disarm_guard", guard=function))


def _body(publication: Publication, event: str) -> sql.Composed:
    known = {"groups": publication.groups, "release": sql.Literal(publication.id)}
    if event == "truncate":
        return template("guards.guard_truncate_body", rows=publication.rows, **known)
    if event == _ROUTE:
        return template("guards.guard_route_body", **known)
    policy = publication.policy
    whose = [rule.column for rule in policy.with_role(Role.QUASI)]
    if policy.subject is not None:
        whose.append(policy.subject)
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    changed_is_row = sql.SQL(" AND ").join(
        sql.SQL("r.{0} = c.{0}").format(sql.Identifier(name)) for name in publication.key_columns
    )
    members = sql.SQL("TABLE {}").format(relation(publication.members))
    return template(
        "guards.guard_body",
        rows=publication.rows,
        **known,
        changed=_changed(publication, [*whose, *sensitive], event),
        moved=_changed(publication, whose, event),
        changed_is_row=changed_is_row,
        plain=plain_block(publication, members),
        models=sql.SQL("").join(model_blocks(publication, members)),
    )


def _changed(publication: Publication, columns: Sequence[str], event: str) -> sql.Composed:
    """Compose the query of the keys of rows that were deleted or changed in one of the columns."""
    removed, added = (_OLD, _NEW) if event in _ROW_EVENTS else (_REMOVED, _ADDED)
    keys = sql.SQL(", ").join(publication.named_keys(of="t"))
    if event.endswith("delete"):
        return sql.SQL("SELECT {} FROM {} AS t").format(keys, removed)
    others = sql.SQL("").join(
        sql.SQL(", t.{} AS {}").format(sql.Identifier(name), sql.Identifier(f"v{i}"))
        for i, name in enumerate(columns, 1)
    )
    return sql.SQL("SELECT {0}{1} FROM {2} AS t EXCEPT ALL SELECT {0}{1} FROM {3} AS t").format(
        keys, others, removed, added
    )


def _settings(publication: Publication) -> sql.Composed:
    """Fix the settings that format texts and numbers, if a model compares them as the proof."""
    if all(MODELS[spec.name].reads is Reads.NOTHING for spec in publication.policy.models):
        return sql.Composed([])
    return sql.SQL("\n").join(map(sql.SQL, VALUE_SETTINGS))


def lock_source(session: Session, source: TableInfo, *, exclude_writers: bool) -> None:
    """Lock the source against DDL, and against writers with ``exclude_writers``.

    It must be the first statement: LOCK takes no snapshot, so later statements see all commits.
    """
    if source.relkind not in {"r", "p", "v"}:
        return  # other relations cannot be locked
    mode = "SHARE ROW EXCLUSIVE" if exclude_writers else "ACCESS SHARE"
    statement = sql.SQL("LOCK TABLE {} IN {} MODE")
    session.pg.execute(statement.format(relation(source.name), sql.SQL(mode)))


def require_owner(session: Session, info: TableInfo) -> None:
    """Raise NotPermitted unless the role owns the source table."""
    for oid, name in _tables(info):
        if session.pg.execute(query("rights.is_owner"), (oid,)).fetchone() != (True,):
            raise NotPermitted(
                f"guards on {name} can only be set by its owner",
                hint="connect as the owner, or publish with --as table",
            )


_TRIED = 4  # times k or l: finding l values takes more rows if they are skewed
_NUMBERS = frozenset({"int2", "int4", "int8", "numeric", "float4", "float8"})


def watched(publication: Publication) -> dict[str, sql.Identifier]:
    """Return the aliases of the columns that the models need, as ``live_members`` uses them."""
    policy = publication.policy
    names = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    if policy.subject is not None:
        names.append(policy.subject)
    return {name: sql.Identifier(f"v{i}") for i, name in enumerate(dict.fromkeys(names), 1)}


def plain_block(publication: Publication, members: sql.Composable) -> sql.Composed:
    """Compose the block that hides the changed classes that fail k or distinct l.

    members: the statement of ``live_members``. If further rows cannot break the conditions, a few
    rows are read first, so that the cost does not depend on the size of the class.
    """
    holds, policy = plain_conditions(publication), publication.policy
    plain = template("guards.guard_plain", groups=publication.groups, members=members, holds=holds)
    if len(policy.models) > 1 and not policy.is_one_row(publication.info):
        return plain  # more rows could take k or distinct l from a class
    few = sql.Literal(_TRIED * max(policy.k, policy.l))
    return template("guards.guard_first", members=members, few=few, holds=holds, plain=plain)


def plain_conditions(publication: Publication) -> sql.Composed:
    """Compose the conditions for k and distinct l on the rows ``s`` of a class.

    A person with several rows counts once. With further models all rows of a person must agree.
    """
    policy, columns = publication.policy, watched(publication)
    sensitive = [columns[rule.column] for rule in policy.with_role(Role.SENSITIVE)]
    conditions = []
    if policy.is_one_row(publication.info):
        conditions.append(sql.SQL("count(*) >= {}").format(sql.Literal(policy.k)))
    else:
        subject = columns[policy.subject or ""]
        persons = sql.SQL("count(DISTINCT s.{})").format(subject)
        conditions.append(sql.SQL("{} >= {}").format(persons, sql.Literal(policy.k)))
        if len(policy.models) > 1:
            agree = sql.SQL("count(DISTINCT (s.{}, s.{})) = {}")
            conditions += [agree.format(subject, value, persons) for value in sensitive]
    if policy.l > 1:
        distinct = sql.SQL("count(DISTINCT s.{0}) + (count(*) > count(s.{0}))::integer >= {1}")
        conditions += [distinct.format(value, sql.Literal(policy.l)) for value in sensitive]
    return sql.SQL(" AND ").join(conditions)


def model_blocks(publication: Publication, members: sql.Composable) -> Iterator[sql.Composed]:
    """Yield the blocks that hide changed classes that fail another model."""
    names = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    models = [spec for spec in publication.policy.models if not is_plain(spec)]
    for demand in demands(models, quasi=(), sensitive=names):
        yield _block(publication, demand, members)


def _block(publication: Publication, demand: Demand, members: sql.Composable) -> sql.Composed:
    """Compose the block that hides the classes that fail one model, with its check's arithmetic."""
    name, columns = demand.spec.name, watched(publication)
    model, values = MODELS[name], _values(demand.spec)
    assert not model.of_whole  # noqa: S101 - refused before anything is read
    others = [columns[other] for other in demand.quasi]
    column = publication.info.column(demand.column)
    labels, numbers = model.reads is Reads.LABELS, model.reads is Reads.NUMBERS
    is_number = numbers and column.base_schema == "pg_catalog" and column.base_type in _NUMBERS
    return template(
        "guards.guard_model",
        part=_part(others),
        label=equal_text(column, sql.SQL("v.s")) if labels else sql.SQL("NULL::text"),
        number=sql.SQL("v.s::text::double precision" if is_number else "NULL::double precision"),
        others=sql.SQL("").join(sql.SQL("s.{}, ").format(other) for other in others),
        column=columns[demand.column],
        members=members,
        arithmetic=arithmetic(name, values),
        groups=publication.groups,
        fails=fails(model, values),
    )


def _values(spec: ModelSpec) -> dict[str, sql.Composable]:
    known = MODELS[spec.name].parameters()
    return {
        name: sql.SQL("CAST({} AS {})").format(
            sql.Literal(list(value) if isinstance(value, tuple) else value), TYPES[known[name].kind]
        )
        for name, value in arguments(spec).items()
    }


def _part(others: Sequence[sql.Identifier]) -> sql.Composable:
    """Compose the number of a subclass, by the other sensitive columns, for the strict check."""
    if not others:
        return sql.SQL("0")
    columns = sql.SQL(", ").join(sql.SQL("v.{}").format(name) for name in others)
    return sql.SQL("dense_rank() OVER (PARTITION BY v.group_id ORDER BY {})").format(columns)


_ALTERED = {
    "file": "{0} was rewritten (ALTER TABLE, VACUUM FULL, CLUSTER or TRUNCATE)",
    "policy": "row-level security hides rows of {0} from the view",
    "column": "column {1} of {0} was renamed or altered",
    "key": "the primary key of {0} was dropped",
    "trigger": "{1} on {0} was dropped, disabled or enabled: writes meanwhile went unseen",
    "function": "the function {1} was replaced or altered",
    "view": "{0}, by which guards read, was replaced",
    "label": "a value of the type of column {1} of {0} was renamed",
}


def _altered(number: int) -> sql.Identifier:
    return sql.Identifier(DATA_SCHEMA, f"altered_{number}")


def _marks(number: int) -> sql.Identifier:
    return sql.Identifier(DATA_SCHEMA, f"marks_{number}")


def fingerprint_statements(
    publication: Publication, triggers: Sequence[str]
) -> Iterator[sql.Composed]:
    """Yield the statements that store the source fingerprint, to run after the guards exist."""
    marks, altered = _marks(publication.data_id), _altered(publication.data_id)
    members = sql.Literal(relation(publication.members).as_string())
    sensitive = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    now = template(
        "live.source_marks",
        tables=sql.SQL("({}::oid[] || {}::regclass::oid)").format(
            _watched_tables(publication.info), members
        ),
        columns=_array(_watched(publication)),
        triggers=_array(sorted(set(triggers))),
        enums=_array([name for name in sensitive if publication.info.column(name).labels]),
    )
    if publication.former is None:
        yield template("live.create_marks", marks=marks)
        yield private_statement(marks)
    yield sql.SQL("DELETE FROM ONLY {}").format(marks)
    yield template("live.note_marks", marks=marks, now=now)
    body = template("live.altered_body", marks=marks, now=_as_noted(marks)).as_string()
    yield template("live.create_altered", altered=altered, body=sql.Literal(body))
    yield sql.SQL("REVOKE ALL ON FUNCTION {}() FROM PUBLIC").format(altered)


def _as_noted(marks: sql.Identifier) -> sql.Composed:
    """Compose the current fingerprint, for the tables and columns that the stored one has."""
    named = "ARRAY(SELECT m.name FROM {} AS m WHERE m.kind = {})"
    kinds = {"columns": "column", "triggers": "trigger", "enums": "label"}
    return template(
        "live.source_marks",
        tables=sql.SQL("ARRAY(SELECT m.relation FROM {} AS m)").format(marks),
        **{slot: sql.SQL(named).format(marks, sql.Literal(kind)) for slot, kind in kinds.items()},
    )


def seen_body(publication: Publication) -> str:
    """Return the source of the function that decides if a live view may show rows."""
    return template(
        "live.live_seen_body",
        groups=publication.groups,
        tables=_watched_tables(publication.info),
        altered=_altered(publication.data_id),
    ).as_string()


def _watched_tables(info: TableInfo) -> sql.Literal:
    return _array([part.oid for part in info.partitions] or [info.oid])


def _array(items: Sequence[str] | Sequence[int]) -> sql.Literal:
    return sql.Literal(list(map(str, items)))


def _watched(publication: Publication) -> list[str]:
    policy = publication.policy
    rules = [*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE)]
    names = {*publication.info.primary_key, *(rule.column for rule in rules)}
    return sorted(names if policy.subject is None else {*names, policy.subject})


def drop_marks(session: Session, number: int) -> None:
    """Drop the objects of ``fingerprint_statements``; no view may use them any more."""
    session.pg.execute(sql.SQL("DROP FUNCTION IF EXISTS {}()").format(_altered(number)))
    session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(_marks(number)))


def _are_kept(session: Session, number: int) -> bool:
    names = {"altered": _altered(number).as_string(), "marks": _marks(number).as_string()}
    return session.one(query("live.keeps_marks"), names) == (True,)


def alterations(session: Session, release: Entry) -> list[str]:
    """Describe the changes of the source that hide a live release, or a missing fingerprint."""
    if not release.kind.is_live:
        return []
    if not _are_kept(session, release.data_id):
        return ["what would notice it is gone or altered: DDL on its source goes unnoticed"]
    statement = sql.SQL(
        "SELECT kind, coalesce(relation::regclass::text, ''), quote_ident(name)"
        " FROM {}() ORDER BY 1, 2, 3"
    )
    rows = session.pg.execute(statement.format(_altered(release.data_id))).fetchall()
    if rows and _is_restored(session, release.data_id):
        change = "this is a restored copy of its database, in which guards have other numbers"
        return [f"{change}; so the view shows nothing"]
    changes = dict.fromkeys(_ALTERED[kind].format(*names) for kind, *names in rows)
    return [f"{change}; so the view shows nothing" for change in changes]


def _is_restored(session: Session, number: int) -> bool:
    """Return True if the guards' view is not the stored one, as in a restored dump."""
    members = sql.Identifier(DATA_SCHEMA, f"members_{number}").as_string()
    statement = sql.SQL("SELECT NOT EXISTS (SELECT FROM {} WHERE relation = to_regclass(%s)::oid)")
    return session.pg.execute(statement.format(_marks(number)), (members,)).fetchone() == (True,)


def require_lasting(session: Session, info: TableInfo) -> None:
    """Raise ConfigError for tables that can change without a statement or DDL.

    A crash empties an unlogged table, and a later person with the same key would appear in the
    class of the former one. Row-level security depends on the settings of a session.
    """
    oids = [part.oid for part in info.partitions] or [info.oid]
    row = session.pg.execute(query("releases.fleeting"), (oids,)).fetchone()
    if row is not None:
        require(Mode.VIEW, UntrackedRows(*row))
