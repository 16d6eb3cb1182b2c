"""The source fingerprint of a live view: detects changes that fire no guard, such as DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.metadata.tables import DATA_SCHEMA
from dbanon.db.queries import query, relation, template
from dbanon.db.releases.publication import identity_statement
from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableInfo

_ALTERED = {
    "file": "{0} was written anew (ALTER TABLE, VACUUM FULL, CLUSTER or TRUNCATE)",
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


def mark_statements(publication: Publication, triggers: Sequence[str]) -> Iterator[sql.Composed]:
    """Yield the statements that store the source fingerprint, to run after the guards exist."""
    marks, altered = _marks(publication.data_id), _altered(publication.data_id)
    members = sql.Literal(relation(publication.members).as_string())
    now = template(
        "live.source_marks",
        tables=sql.SQL("({}::oid[] || {}::regclass::oid)").format(
            _tables(publication.info), members
        ),
        columns=_array(_watched(publication)),
        triggers=_array(sorted(set(triggers))),
        enums=_array(_enums(publication)),
    )
    if publication.former is None:
        yield template("live.create_marks", marks=marks)
        yield identity_statement(marks)
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
        tables=_tables(publication.info),
        altered=_altered(publication.data_id),
    ).as_string()


def _tables(info: TableInfo) -> sql.Literal:
    return _array([part.oid for part in info.partitions] or [info.oid])


def _array(items: Sequence[str] | Sequence[int]) -> sql.Literal:
    return sql.Literal(list(map(str, items)))


def _watched(publication: Publication) -> list[str]:
    policy = publication.policy
    rules = [*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE)]
    names = {*publication.info.primary_key, *(rule.column for rule in rules)}
    return sorted(names if policy.subject is None else {*names, policy.subject})


def _enums(publication: Publication) -> list[str]:
    names = [rule.column for rule in publication.policy.with_role(Role.SENSITIVE)]
    return [name for name in names if publication.info.column(name).labels]


def drop_marks(session: Session, number: int) -> None:
    """Drop the objects of ``mark_statements``; no view may use them any more."""
    session.pg.execute(sql.SQL("DROP FUNCTION IF EXISTS {}()").format(_altered(number)))
    session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(_marks(number)))


def _are_kept(session: Session, number: int) -> bool:
    name = _altered(number).as_string()
    return session.pg.execute("SELECT to_regproc(%s) IS NOT NULL", (name,)).fetchone() == (True,)


def alterations(session: Session, release: Entry) -> list[str]:
    """Describe the changes of the source that hide a live release, or a missing fingerprint."""
    if release.kind is not ReleaseKind.VIEW:
        return []
    if not _are_kept(session, release.data_id):
        return ["what would notice it was dropped: what DDL does to its source goes unnoticed"]
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
        relation, reason = row
        raise ConfigError(
            f"{relation} {reason}, which the guards of a live view would not see",
            hint="publish it with --as table",
        )
