"""Find, share and drop the companion relations of a view.

Each is a table in the schema of the view: its rows can be replaced while others read it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from dbanon.db import catalog, identity, rights
from dbanon.db.locks import LockNotGranted, patiently, unless_held
from dbanon.db.metadata import ledger, spending
from dbanon.db.queries import identifiers, query, relation, template
from dbanon.db.releases import aside, relations
from dbanon.db.releases.copies import same_shape
from dbanon.db.releases.publication import private_statement
from dbanon.domain.assignment import LabelRow, label_rows
from dbanon.domain.errors import ConfigError, DatabaseError
from dbanon.domain.messages import OF_BUCKETS, counted_by_in_words, in_words, noisy_in_words
from dbanon.domain.policy import BUCKET, COUNT, Role
from dbanon.domain.table import LONGEST_NAME, TableName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.assignment import ValueColumn


class Found(NamedTuple):
    """The relation that has a name: its OID (None if there is none), and True if dbanon made it."""

    oid: int | None = None
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Companion:
    """A kind of companion relation, identified by its comment.

    key: the policy key that turns it on; ending: the suffix of its name; sentence: its comment,
    with a slot for the view.
    """

    key: str
    ending: str
    sentence: str

    def name(self, view: TableName) -> TableName:
        """Return the name of the relation for a view; raises ConfigError if it is too long."""
        name = f"{view.name}{self.ending}"
        if len(name.encode()) > LONGEST_NAME:
            raise ConfigError(
                f"the {self.key} of {view} takes a name of more than {LONGEST_NAME} bytes",
                hint=f"publish under a shorter --name, or take {self.key} out of the policy",
            )
        return TableName(view.schema, name)

    def comment(self, view: TableName) -> str:
        """Return the comment of the relation for a view."""
        return self.sentence.format(view)

    @property
    def comment_pattern(self) -> str:
        """The LIKE pattern of its comment for any view."""
        return self.sentence.format("%")

    def looked_up(self, session: Session, view: TableName) -> Found:
        """Look up the relation by its name."""
        parameters = {
            "schema": view.schema,
            "name": f"{view.name}{self.ending}",
            "view": view.name,
            "comment": self.comment(view),
        }
        row = session.pg.execute(query("releases.relation_beside"), parameters).fetchone()
        return Found() if row is None else Found(row[0], bool(row[1]))

    def find(self, session: Session, view: TableName) -> int | None:
        """Return the OID of dbanon's relation for a view, None if there is none."""
        oid, is_ours = self.looked_up(session, view)
        return oid if is_ours else None

    def require_free(self, session: Session, view: TableName) -> Found:
        """Look up the companion relation; raises ConfigError if another object has its name."""
        found = self.looked_up(session, view)
        if found.oid is not None and not found.is_ours:
            raise ConfigError(
                f"{self.name(view)} exists, and is no relation of {self.key} that only this role"
                " can change",
                hint=f"publish under another --name, or take {self.key} out of the policy",
            )
        return found

    def statements(self, view: TableName, *create: sql.Composed) -> list[sql.Composed]:
        """Return the statements that make it, without rights; create: what gives it its name."""
        name = relation(self.name(view))
        comment = sql.Literal(self.comment(view))
        return [
            *create,
            private_statement(name),
            sql.SQL("COMMENT ON TABLE {} IS {}").format(name, comment),
        ]

    def share(self, session: Session, view: TableName) -> None:
        """Grant SELECT to exactly the roles that may read the view, and admit the table."""
        name = self.name(view)
        wanted = {grant for grant in relations.grants(session, view) if grant.privilege == "SELECT"}
        wanted = {grant for grant in wanted if grant.column is None}
        present = set(relations.grants(session, name))
        for grant in present - wanted:
            session.pg.execute(rights.revoke_statement(name, grant.grantee or "public"))
        for grant in wanted - (present if present <= wanted else set()):
            session.pg.execute(grant.statement(name))
        made = self.find(session, view)
        if made is not None:
            session.admitted[made] = name

    def retire(self, session: Session, view: TableName) -> None:
        """Withdraw the relation, and drop it unless a lock or another object prevents that."""
        oid = self.find(session, view)
        if oid is None:
            return
        self.withdraw(session, view)
        session.admitted[oid] = self.name(view)
        with suppress(relations.DependedOn):
            if unless_held(session, partial(self.drop, session, view)):
                identity.dismiss(session, self.name(view))

    def withdraw(self, session: Session, view: TableName) -> None:
        """Revoke all rights and delete all rows; takes no lock that conflicts with readers."""
        if self.find(session, view) is None:
            return
        # Nobody adds a trigger from now on; one that was added meanwhile would run.
        lock = sql.SQL("LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE")
        session.pg.execute(lock.format(relation(self.name(view))))
        rights.take_from_all(session, self.name(view))
        if self.find(session, view) is not None:
            self.empty(session, view)

    def empty(self, session: Session, view: TableName) -> None:
        """Delete all rows, without blocking readers."""
        session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(self.name(view))))

    def set_aside(self, session: Session, view: TableName, *, oid: int) -> TableName | None:
        """Free the name for a table with other columns, in short lock attempts.

        Returns the new name of the previous table if others depend on it. Raises DatabaseError if a
        session does not release it.
        """
        name = self.name(view)
        act = partial(aside.set_aside, session, name, oid=oid)
        try:
            left = patiently(session, act, on=[oid], budget=relations.PATIENCE)
        except LockNotGranted as held:
            raise DatabaseError(
                f"{name} gets other columns, and {held} is using it; nothing was published",
                hint=f"{held.remedy}run the command again",
            ) from None
        identity.dismiss(session, name)
        return left

    def drop(self, session: Session, view: TableName) -> None:
        """Drop the relation if it exists; raises DependedOn if other objects depend on it."""
        if self.find(session, view) is not None:
            name = self.name(view)
            with relations.dropping(name):
                session.pg.execute(sql.SQL("DROP TABLE {}").format(relation(name)))


LABELS = Companion("labels", "_labels", "what is above the labels of {}; made by dbanon")
BUCKETS = Companion(
    "anatomy", "_sensitive", "the sensitive values of the buckets of {}; made by dbanon"
)
COUNTS = Companion("counts", "_counts", "counts with noise, beside {}; made by dbanon")
KINDS = (LABELS, BUCKETS, COUNTS)


def present(session: Session, view: TableName) -> dict[Companion, int]:
    """Return the OID of each companion relation of a view."""
    found = {kind: kind.find(session, view) for kind in KINDS}
    return {kind: oid for kind, oid in found.items() if oid is not None}


def grant_statements(session: Session, view: TableName, roles: Sequence[str]) -> list[sql.Composed]:
    """Return the statements that grant SELECT on the companion relations to roles."""
    return [
        sql.SQL("GRANT SELECT ON {} TO {}").format(relation(kind.name(view)), sql.Identifier(role))
        for kind in present(session, view)
        for role in roles
    ]


def revoke_statements(
    session: Session, view: TableName, roles: Sequence[str]
) -> list[sql.Composed]:
    """Return the statements that revoke rights on the companion relations from roles."""
    return [
        rights.revoke_statement(kind.name(view), role)
        for kind in present(session, view)
        for role in roles
    ]


_COLUMNS = ("column_name", *LabelRow._fields)


def label_statements(publication: Publication) -> list[sql.Composed]:
    """Return the statements that create the empty relation, if the policy publishes labels."""
    if not publication.policy.labels:
        return []
    view = publication.view
    create = template("companions.create_labels", labels=relation(LABELS.name(view)))
    return LABELS.statements(view, create)


def publish_labels(
    session: Session, publication: Publication, columns: Iterable[ValueColumn]
) -> None:
    """Publish the ancestors of the labels, or retire the relation.

    Raises ConfigError if the name is taken.
    """
    view = publication.view
    if not publication.policy.labels:
        LABELS.retire(session, view)
        return
    name = LABELS.name(view)
    found = LABELS.require_free(session, view)
    session.run(label_statements(publication) if found.oid is None else ())
    LABELS.empty(session, view)
    _fill(session, name, columns)
    LABELS.share(session, view)


def _fill(session: Session, name: TableName, columns: Iterable[ValueColumn]) -> None:
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(relation(name), identifiers(_COLUMNS))
    with session.pg.cursor().copy(copy) as rows:
        for column in columns:
            for row in label_rows(column):
                rows.write_row((column.name, *row))


def bucket_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the statements that create the candidate's relation, if any, and drop the draft."""
    if publication.policy.anatomy:
        buckets = relation(BUCKETS.name(publication.candidate))
        yield template("companions.create_buckets", buckets=buckets, **_value_slots(publication))
    if publication.drafted:
        yield sql.SQL("DROP TABLE {}").format(publication.draft)


def _value_slots(publication: Publication) -> dict[str, sql.Composable]:
    name = bucket_column(publication) or ""
    slots = {"value": publication.value(name), "sensitive": sql.Identifier(name)}
    return {**slots, **publication.copied_from}


def bucket_column(publication: Publication) -> str | None:
    """Return the sensitive column of an anatomy release, None without anatomy."""
    if not publication.policy.anatomy:
        return None
    (rule,) = publication.policy.with_role(Role.SENSITIVE)
    return rule.column


def bucket_values(publication: Publication) -> sql.Composed:
    """Compose the query of the sensitive values that the relation will hold, one per row."""
    return template("companions.values", **_value_slots(publication))


def values_of_buckets(
    session: Session, publication: Publication, view: TableName
) -> sql.Composed | None:
    """Compose the query of a served relation's values; None if others could change it."""
    name, sensitive = BUCKETS.name(view), bucket_column(publication)
    found = BUCKETS.looked_up(session, view)
    if found.oid is None or not found.is_ours or sensitive is None:
        return None
    if sensitive not in {one.name for one in catalog.describe(session, name).columns}:
        return None
    session.admitted[found.oid] = name
    slots = {"buckets": relation(name), "sensitive": sql.Identifier(sensitive)}
    return template("companions.values_of_buckets", **slots)


def moved_bucket_statements(publication: Publication) -> list[sql.Composed]:
    """Return the statements that make the proved relation that of the view, if it uses anatomy."""
    if not publication.policy.anatomy:
        return []
    view, candidate = publication.view, BUCKETS.name(publication.candidate)
    name, schema = BUCKETS.name(view), view.schema or "public"
    (rule,) = publication.policy.with_role(Role.SENSITIVE)
    move, rename = sql.SQL("ALTER TABLE {} SET SCHEMA {}"), sql.SQL("ALTER TABLE {} RENAME TO {}")
    moved = relation(TableName(schema, candidate.name))
    words = {**OF_BUCKETS, rule.column: in_words(rule.column, Role.SENSITIVE)}
    comment = sql.SQL("COMMENT ON COLUMN {}.{} IS {}")
    return [
        *BUCKETS.statements(
            view,
            move.format(relation(candidate), sql.Identifier(schema)),
            rename.format(moved, sql.Identifier(name.name)),
        ),
        *(
            comment.format(relation(name), sql.Identifier(column), sql.Literal(words[column]))
            for column in (BUCKET, rule.column, COUNT)
        ),
    ]


class PublishedBuckets(NamedTuple):
    """What became of the buckets: their readers may use the relation, so its rows are replaced.

    aside: the new name of a relation with other columns on which others depend; is_copy: whether
    the rows were copied from the proved relation, and not moved.
    """

    aside: TableName | None = None
    is_copy: bool = False


def publish_buckets(session: Session, publication: Publication) -> PublishedBuckets:
    """Publish the values of the buckets, or retire the relation if the policy has no anatomy.

    Raises ConfigError if the name is taken.
    """
    view = publication.view
    if not publication.policy.anatomy:
        BUCKETS.retire(session, view)
        return PublishedBuckets()
    left, oid = None, BUCKETS.require_free(session, view).oid
    candidate = BUCKETS.name(publication.candidate)
    tables = relation(BUCKETS.name(view)), relation(candidate)
    is_copy = oid is not None and same_shape(session, *tables)
    if is_copy:
        BUCKETS.empty(session, view)
        copy = sql.SQL("INSERT INTO {} TABLE {}").format(*tables)
        session.run([copy, sql.SQL("DROP TABLE {}").format(tables[1])])
    else:
        left = None if oid is None else BUCKETS.set_aside(session, view, oid=oid)
        session.run(moved_bucket_statements(publication))
    identity.dismiss(session, candidate)
    BUCKETS.share(session, view)
    return PublishedBuckets(left, is_copy)


_PERSONS = "persons"


def publish_counts(
    session: Session,
    view: TableName,
    by: Sequence[str],
    rows: Iterable[tuple[str | int | None, ...]],
    *,
    epsilon: float,
) -> TableName | None:
    """Publish rows of labels, one per column of ``by``, each with its noisy count.

    Counts by the same columns are replaced in place. Counts by other columns are set aside; returns
    their new name if others depend on them. Raises ConfigError if the name is taken.
    """
    name, left = COUNTS.name(view), None
    oid = COUNTS.require_free(session, view).oid
    columns = (*by, _PERSONS)
    if oid is not None and _count_columns(session, oid) != columns:
        left, oid = COUNTS.set_aside(session, view, oid=oid), None
    create = [] if oid is not None else _create_count_statements(view, by)
    session.run([*create, *_word_count_statements(view, by, epsilon=epsilon)])
    session.pg.execute(sql.SQL("DELETE FROM ONLY {}").format(relation(name)))
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(relation(name), identifiers(columns))
    with session.pg.cursor().copy(copy) as written:
        for row in rows:
            written.write_row(row)
    COUNTS.share(session, view)
    return left


def keep_counts(session: Session, view: TableName) -> None:
    """Grant SELECT on existing counts to the roles that may read the view."""
    if COUNTS.find(session, view) is not None:
        COUNTS.share(session, view)


def unaccounted_counts(session: Session) -> list[TableName]:
    """Return the counts without a record of the spent budget, as after a partial backup."""
    names = session.pg.execute(
        query("releases.relations_like"), {"comment": COUNTS.comment_pattern}
    ).fetchall()
    found = []
    for schema, name in names:
        view = TableName(schema, name.removesuffix(COUNTS.ending))
        entry = ledger.latest_entry(session, view)
        if entry is None or not spending.has_account(session, entry.table):
            found.append(TableName(schema, name))
    return found


def _count_columns(session: Session, oid: int) -> tuple[str, ...]:
    values = {"relation": oid}
    rows = session.pg.execute(query("releases.columns_of_relation"), values).fetchall()
    return tuple(name for name, _ in rows)


def _create_count_statements(view: TableName, by: Sequence[str]) -> list[sql.Composed]:
    name = relation(COUNTS.name(view))
    columns = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(one)) for one in by)
    return COUNTS.statements(
        view, template("companions.create_counts", counts=name, columns=columns)
    )


def _word_count_statements(
    view: TableName, by: Sequence[str], *, epsilon: float
) -> list[sql.Composed]:
    words = {one: counted_by_in_words(one) for one in by}
    words[_PERSONS] = noisy_in_words(_PERSONS, epsilon=epsilon)
    name, comment = relation(COUNTS.name(view)), sql.SQL("COMMENT ON COLUMN {}.{} IS {}")
    return [
        comment.format(name, sql.Identifier(column), sql.Literal(text))
        for column, text in words.items()
    ]
