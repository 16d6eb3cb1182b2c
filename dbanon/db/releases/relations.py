"""Compose, serve and drop the relations of a release, with the promise in their comments."""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from dbanon.db.identity import serves
from dbanon.db.locks import patiently
from dbanon.db.queries import identifiers, query, relation, template
from dbanon.db.releases import guards
from dbanon.db.releases.aside import set_aside
from dbanon.db.releases.guards import drop_guards, guard_statements
from dbanon.db.releases.immutability import seal_statements, seen, seen_body, shape
from dbanon.db.releases.publication import data_table, private_statement
from dbanon.domain.errors import DatabaseError, PolicyError
from dbanon.domain.messages import (
    OF_BUCKETS,
    floor_in_words,
    in_words,
    is_of_steward,
    pseudonym_in_words,
)
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ModelSpec, Role, replaced
from dbanon.formats.policies import model_documents, models_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableInfo, TableName


def needed_tables(release: Entry) -> tuple[str, ...]:
    """Return the possible names of the private tables of a served release."""
    prefixes, state = ("rows", "groups", "marks"), release.source_state
    places = () if state is None or state.places is None else (f"places_{state.places}",)
    names = (f"{prefix}_{release.membership_id}" for prefix in prefixes)
    return f"release_{release.data_id}", *names, *places


def build_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that create the empty private tables."""
    yield _rows_statement(publication)
    yield private_statement(publication.rows)
    recoded = sql.SQL(",\n    ").join(
        sql.SQL("{} {}{}").format(
            sql.Identifier(f"q{i}"),
            sql.Identifier("pg_catalog", published.removesuffix("[]")),
            sql.SQL("[]" if published.endswith("[]") else ""),
        )
        for i, published in enumerate(publication.stored_types, 1)
    )
    if not publication.kind.is_live:
        recoded += sql.SQL(",\n    class bigint")
    yield template(
        "releases.create_groups",
        groups=publication.groups,
        release=sql.Literal(publication.id),
        columns=recoded,
    )
    yield private_statement(publication.groups)
    if publication.drafted:
        yield template(
            "releases.create_draft",
            draft=publication.draft,
            columns=_named(publication.coded),
            source=publication.reading,
        )


def _named(columns: Mapping[str, str]) -> sql.Composed:
    """Compose columns of the source under the names that private tables have for them."""
    name, form = sql.Identifier, sql.SQL(", s.{} AS {}")
    return sql.SQL("").join(form.format(name(one), name(own)) for one, own in columns.items())


def _rows_statement(publication: Publication) -> sql.Composed:
    leaf = ", 0 AS leaf" if publication.info.leaves else ""
    last = leaf if publication.kind.is_live else ", 0 AS value"
    last += "" if publication.places is None else ", NULL::tid AS place"
    return template(
        "releases.create_rows",
        rows=publication.rows,
        keys=sql.SQL(", ").join(publication.named_keys(of="s")),
        last=_named(publication.written) + sql.SQL(last),
        source=publication.reading,
    )


def serve_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that create the sealed copy, or the guards on the source."""
    if publication.kind.is_live:
        yield from guard_statements(publication)
        yield from seen_statements(publication)
    else:
        yield from copy_statements(publication, "releases.create_release")
        yield from close_statements(publication)


def close_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that make a new copy immutable, and create its snapshot function."""
    yield private_statement(publication.release)
    yield from seal_statements(publication.release, publication.id)
    yield from seen_statements(publication)


def copy_statements(publication: Publication, name: str) -> Iterator[sql.Composed]:
    """Yield the statements that fill the private copy by a template."""
    yield from number_statements(publication)
    yield template(name, release=publication.release, served=served_rows(publication))


def number_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that give each group its class number."""
    yield template(
        "releases.number_groups",
        **{"class": publication.number_of_group},
        groups=publication.groups,
        key=sql.Literal(publication.key),
    )
    # Without statistics PostgreSQL expects many groups of one number, and sorts to join.
    counted = [sql.SQL("{} (group_id)").format(publication.groups)]
    if publication.drafted:
        counted.append(sql.SQL("{} (code)").format(publication.draft))
    yield sql.SQL("ANALYZE {}").format(sql.SQL(", ").join(counted))


def served_rows(publication: Publication) -> sql.Composed:
    """Compose the query of the rows of the private copy."""
    columns = sql.SQL("{}, g.class AS {}").format(publication.columns(), publication.class_column)
    slots = {"columns": columns, "made_up": publication.made_up, **publication.copied_from}
    if publication.drafted:
        joined = "" if publication.policy.anatomy else "  JOIN {source} AS s ON {join}"
        sensitive = sql.SQL(joined).format(**publication.copied_from)
        return template("releases.release_rows_of_draft", sensitive=sensitive, **slots)
    return template("releases.release_rows", order=template("releases.random_order"), **slots)


def seen_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the function that raises an error for older snapshots, which would see no rows."""
    is_live = publication.kind.is_live
    body = guards.seen_body(publication) if is_live else seen_body(publication.release)
    yield template("releases.create_seen", seen=publication.seen, body=sql.Literal(body))
    # Readers call it, even if default privileges revoke EXECUTE.
    yield sql.SQL("GRANT EXECUTE ON FUNCTION {}() TO PUBLIC").format(publication.seen)


def view_statement(publication: Publication, name: TableName | None = None) -> sql.Composed:
    """Compose the published view, or an equal one under another name."""
    view, names = relation(name or publication.view), identifiers(publication.names)
    if not publication.kind.is_live:
        return template(
            "releases.publish_table",
            view=view,
            names=names,
            columns=identifiers(publication.names, of="s"),
            release=publication.release,
            seen=publication.seen,
        )
    live = publication.live(
        "live.live_rows",
        columns=publication.columns(),
        groups=publication.groups,
        seen=publication.seen,
    )
    return template("live.publish_view", view=view, names=names, live=live)


def comment_statement(publication: Publication, candidate: TableName | None = None) -> sql.Composed:
    """Compose the comment with the promise, for the view or its candidate."""
    return sql.SQL("COMMENT ON VIEW {} IS {}").format(
        relation(candidate or publication.view), sql.Literal(describe_promise(publication))
    )


def column_comments(
    publication: Publication, written: Mapping[str, str] | None = None
) -> Iterator[sql.Composed]:
    """Yield the comments that describe the columns of the view; written: user comments to keep."""
    recodings = dict(publication.recodings)
    rules = {name: rule for rule in publication.policy.columns for name in rule.published_as}
    for name in publication.names:
        rule = rules.get(name)
        if name == publication.policy.pseudonym:
            words = pseudonym_in_words(name)
        elif rule is None:
            words = OF_BUCKETS[name]
        else:
            recoding, floor = recodings.get(rule.column) or rule.replace, floor_in_words(rule)
            masking = publication.policy.masked(rule.column)
            words = in_words(name, rule.role, recoding=recoding, floor=floor, masking=masking)
        text = (written or {}).get(name, words)
        column = sql.SQL("{}.{}").format(relation(publication.view), sql.Identifier(name))
        yield sql.SQL("COMMENT ON COLUMN {} IS {}").format(column, sql.Literal(text))


def forget_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that drop the membership, which a proved copy does not need."""
    for table in (publication.rows, publication.groups):
        yield sql.SQL("DROP TABLE {}").format(table)


def drop_membership(session: Session, number: int) -> None:
    """Drop the membership, the group values and the guards of a release."""
    drop_guards(session, number)
    members = data_table("members", number)
    session.pg.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(members))
    for prefix in ("rows", "groups"):
        table = data_table(prefix, number)
        session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))


def drop_copy(session: Session, number: int) -> None:
    """Drop a private copy with its type and its snapshot function."""
    table = data_table("release", number)
    session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    session.pg.execute(sql.SQL("DROP FUNCTION IF EXISTS {}()").format(seen(number)))
    session.pg.execute(sql.SQL("DROP TYPE IF EXISTS {}").format(shape(number)))


# How long, in seconds, to try to replace a view that others are reading.
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Privilege:
    """One grant on a view, or on one of its columns; an empty grantee is PUBLIC."""

    grantee: str
    privilege: str
    grantable: bool
    column: str | None

    def statement(self, view: TableName) -> sql.Composed:
        """Compose the GRANT that restores it."""
        columns = sql.Composed([])
        if self.column is not None:
            columns = sql.SQL(" ({})").format(sql.Identifier(self.column))
        return sql.SQL("GRANT {}{} ON {} TO {}{}").format(
            sql.SQL(self.privilege),  # from the catalog, one of PostgreSQL's own words
            columns,
            relation(view),
            sql.Identifier(self.grantee or "public"),
            sql.SQL(" WITH GRANT OPTION" if self.grantable else ""),
        )


class DependedOn(DatabaseError):
    """Other objects depend on a relation that should be dropped."""


@contextmanager
def dropping(name: TableName) -> Iterator[None]:
    """Raise DependedOn if the DROP in the block fails because of dependent objects."""
    try:
        yield
    except psycopg.errors.DependentObjectsStillExist:
        raise DependedOn(
            f"other objects depend on {name}", hint="drop what depends on it first"
        ) from None


def oids_of(session: Session, names: Sequence[TableName]) -> list[int]:
    """Return the OIDs of those relations that exist."""
    asked = [name.schema for name in names], [name.name for name in names]
    return [oid for (oid,) in session.pg.execute(query("catalog.relation_oids"), asked)]


def oid_of(session: Session, name: TableName) -> int | None:
    """Return the OID of the relation with that name, None if there is none."""
    return next(iter(oids_of(session, [name])), None)


def replace(session: Session, view: TableName, create: sql.Composed) -> TableName | None:
    """Run CREATE OR REPLACE VIEW, or create the view again with its grants if its columns change.

    Returns the new name of the previous view if other relations depend on it; it then shows no
    rows.
    """
    left = None
    try:
        with session.pg.transaction():
            session.pg.execute(create)
    except psycopg.errors.InvalidTableDefinition:
        held, oid = grants(session, view), oid_of(session, view) or 0
        left = set_aside(session, view, oid=oid, is_view=True)
        session.pg.execute(create)
        for grant in held:
            _restore(session, view, grant)
    row = session.pg.execute(query("catalog.view_options"), (view.schema, view.name)).fetchone()
    if row is None or "security_barrier=true" not in (row[0] or ()):
        raise DatabaseError(f"{view} was created without security_barrier")
    return left


def same(session: Session, one: TableName, other: TableName) -> bool:
    """Return True if two views exist and have equal definitions and column types."""
    names = (one.schema, one.name, other.schema, other.name)
    return session.one(query("releases.same_view"), names) == (True,)


def put_in_place(
    session: Session, view: TableName, create: sql.Composed, *, candidate: TableName
) -> TableName | None:
    """Replace the published view by one equal to the candidate, unless it is equal already.

    Replacing needs an exclusive lock, in short attempts. Raises LockNotGranted if readers do not
    release theirs; returns the result of ``replace``.
    """
    left = None
    if not same(session, view, candidate):
        act = partial(replace, session, view, create)
        left = patiently(session, act, on=oids_of(session, [view]), budget=PATIENCE)
        if not same(session, view, candidate):
            raise DatabaseError(f"{view} is not the view that was proved", hint="dbanon doctor")
    session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(candidate)))
    return left


def grants(session: Session, view: TableName) -> list[Privilege]:
    """Return the privileges on a view of roles other than its owner."""
    rows = session.pg.execute(query("rights.grants"), (view.schema, view.name)).fetchall()
    return [Privilege(*row) for row in rows]


def readers(session: Session, view: TableName) -> tuple[str, ...]:
    """Return the roles that were granted SELECT on a view, other than its owner."""
    granted = grants(session, view)
    return tuple(sorted({one.grantee or "PUBLIC" for one in granted if one.privilege == "SELECT"}))


def comments(session: Session, view: TableName) -> dict[str, str]:
    """Return the comments on columns of a view that dbanon did not write."""
    found = session.pg.execute(query("catalog.column_comments"), (view.schema, view.name))
    return {name: text for name, text in found if is_of_steward(name, text)}


def _restore(session: Session, view: TableName, grant: Privilege) -> None:
    try:
        with session.pg.transaction():
            session.pg.execute(grant.statement(view))
    except psycopg.errors.UndefinedColumn:
        return  # the column that was granted is no longer published


def drop(session: Session, view: TableName, *, data_id: int) -> None:
    """Drop a view if it reads the tables of that number; raises DependedOn."""
    oid = oid_of(session, view)
    if oid is not None and serves(session, oid, data_id):
        with dropping(view):
            session.pg.execute(sql.SQL("DROP VIEW {}").format(relation(view)))


_MARK = "dbanon"


@dataclass(frozen=True, slots=True)
class Promise:
    """The models of a release and the roles of its columns; nothing secret.

    trees: the taxonomies and orders of sensitive columns whose models compare by distance, as
    ``dbanon.distances`` takes them; proved_at: time of the proof, None if unknown; anatomy: True if
    the sensitive values are in a companion relation.
    """

    release: int
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    models: tuple[ModelSpec, ...]
    trees: Mapping[str, object] = field(default_factory=dict)
    proved_at: datetime | None = None
    anatomy: bool = False

    @property
    def document(self) -> dict[str, object]:
        """The promise as ``dbanon.verify_promise`` takes it."""
        return {
            "quasi": self.quasi,
            "sensitive": self.sensitive,
            "models": model_documents(self.models),
            "trees": self.trees,
        } | ({"anatomy": True} if self.anatomy else {})

    def is_of(self, policy: Policy) -> bool:
        """Return True for the models and columns of a policy."""
        sensitive = tuple(rule.column for rule in policy.with_role(Role.SENSITIVE))
        own = self.models, self.quasi, self.sensitive, self.anatomy
        return own == (policy.models, policy.published_quasi, sensitive, policy.anatomy)

    def over(self, *, k: int | None, l: int | None) -> Promise:
        """Return the promise with another k or l."""
        counts = ((K_ANONYMITY, "k", k), (L_DIVERSITY, "l", l))
        given = (ModelSpec(name, {key: n}) for name, key, n in counts if n is not None)
        return dataclasses.replace(self, models=replaced(self.models, *given))


def promise_of(publication: Publication) -> Promise:
    """Return the promise of a publication."""
    policy = publication.policy
    return Promise(
        release=publication.id,
        quasi=policy.published_quasi,
        sensitive=tuple(rule.column for rule in policy.with_role(Role.SENSITIVE)),
        models=policy.models,
        trees=publication.trees,
        anatomy=policy.anatomy,
    )


def describe_promise(publication: Publication) -> str:
    """Return the comment of the published relation."""
    document = {
        "release": publication.id,
        **promise_of(publication).document,
        "proved_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return f"{_MARK}: {json.dumps(document, ensure_ascii=False)}"


def numbered_promise(publication: Publication) -> Promise:
    """Return the promise with the class number in place of the quasi-identifiers."""
    column = publication.class_column.as_string().strip('"')
    return dataclasses.replace(promise_of(publication), quasi=(column,))


@contextmanager
def numbering(session: Session, publication: Publication) -> Iterator[int]:
    """Provide a view of class numbers and sensitive values in the block, by OID.

    It has the rows of a copy that this transaction has written.
    """
    promise, view = numbered_promise(publication), publication.numbered
    columns = identifiers((*promise.quasi, *promise.sensitive), of="s")
    slots = {"view": view, "columns": columns, "release": publication.release}
    slots["is_written"] = template("releases.is_written", first=sql.Literal(publication.first))
    session.pg.execute(template("releases.number_classes", **slots))
    yield session.one("SELECT to_regclass(%s)::oid::bigint", (view.as_string(),))[0]
    session.pg.execute(sql.SQL("DROP VIEW {}").format(view))


def read_promise(session: Session, info: TableInfo) -> Promise | None:
    """Read the promise from the comment of a relation; None if dbanon did not write it."""
    row = session.pg.execute(query("catalog.relation_comment"), (info.oid,)).fetchone()
    text = row[0] if row and row[0] else ""
    if not text.startswith(f"{_MARK}: "):
        return None
    try:
        document = json.loads(text.removeprefix(f"{_MARK}: "))
        proved_at = document.get("proved_at")
        return Promise(
            release=int(document["release"]),
            quasi=tuple(map(str, document["quasi"])),
            sensitive=tuple(map(str, document["sensitive"])),
            models=models_of(document["models"]),
            trees=dict(document["trees"]),
            proved_at=None if proved_at is None else datetime.fromisoformat(proved_at),
            anatomy=document.get("anatomy") is True,
        )
    except (AttributeError, ValueError, KeyError, TypeError, PolicyError):
        return None
