"""Changes of a table since its policy was stored or last published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbanon.domain.policy import DEFAULT_NAME, policy_option
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "p": "partitioned"}


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """One column; ``number``: order of age, survives a rename; ``labels``: of an enum in order."""

    name: str
    number: int
    type: str
    nullable: bool
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Structure of a table, everything relevant to a policy but its rows.

    ``key``: primary key; ``foreign_parts``: some rows are in foreign tables; ``definition``: digest
    of a view's definition and of all views below. Names and types survive a dump and restore;
    ``oid`` and ``owner_oid``, which do not, only make messages clearer.
    """

    relkind: str
    row_security: bool
    forced: bool
    key: tuple[str, ...]
    columns: tuple[ColumnShape, ...]
    has_children: bool
    has_parents: bool
    foreign_parts: bool
    owner: str
    definition: str | None = None
    oid: int | None = None
    owner_oid: int | None = None

    def is_like(self, other: Shape) -> bool:
        """Return True if it has the same columns with the same numbers, and the same kind."""
        columns = [[(c.name, c.number, c.type) for c in one.columns] for one in (self, other)]
        return self.relkind == other.relkind and columns[0] == columns[1]

    def column(self, name: str) -> ColumnShape | None:
        """Return the column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A table that fitted its policy, with the versions of the policy's taxonomies."""

    shape: Shape
    taxonomies: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Baseline:
        """Read a JSON document made by ``dataclasses.asdict``."""
        shape = dict(document["shape"])
        columns = tuple(_column(**column) for column in shape.pop("columns"))
        key = tuple(shape.pop("key"))
        return cls(Shape(**shape, key=key, columns=columns), dict(document["taxonomies"]))


def _column(*, labels: Sequence[str] | None = None, **rest: Any) -> ColumnShape:  # noqa: ANN401
    return ColumnShape(**rest, labels=None if labels is None else tuple(labels))


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the column, if any, and a hint; ``stops``: publication stops until reviewed."""

    column: str | None
    reason: str
    hint: str
    of_rights: bool = False
    stops: bool = True

    def __str__(self) -> str:
        """Return the column and the reason."""
        if self.column is None:
            return self.reason
        return f"column {quote_identifier(self.column)} {self.reason}"


def compare(
    before: Baseline,
    now: Baseline,
    *,
    table: TableName,
    policy: str = DEFAULT_NAME,
    drops_rest: bool = False,
) -> list[Change]:
    """Return every change, the most serious first; columns and types only, never values.

    policy: name of the fitting policy; drops_rest: it omits unnamed columns.
    """
    if before.shape.relkind != now.shape.relkind:
        return [_of_kind(now.shape, table)]
    store = _store(table, policy)
    review = _review(table, policy, store)
    return [
        *_of_owner(before.shape, now.shape, store),
        *_of_access(before.shape, now.shape, table),
        *_of_family(before.shape, now.shape, review),
        *_of_definition(before.shape, now.shape, review),
        *_of_columns(before.shape, now.shape, review, drops_rest=drops_rest),
        *_of_labels(before.shape, now.shape, table, store),
        *_of_key(before.shape, now.shape, review),
        *_of_taxonomies(before, now, review),
    ]


def _store(table: TableName, policy: str) -> str:
    options = f"--file policy.toml {policy_option(policy)}".rstrip()
    return command("dbanon policy set", table, options=options)


def _review(table: TableName, policy: str, store: str) -> str:
    options = f"{policy_option(policy)} > policy.toml".lstrip()
    export = command("dbanon policy export", table, options=options)
    return f"{export}; edit it; {store}"


def _of_kind(now: Shape, table: TableName) -> Change:
    kind = _KINDS.get(now.relkind, "an ordinary table")
    return Change(None, f"{table} is {kind} now", command("dbanon inspect", table))


def _of_owner(before: Shape, now: Shape, store: str) -> Iterator[Change]:
    """Yield a new owner: the owner of a schema can replace a table by another."""
    if before.owner != now.owner:
        old, new = quote_identifier(before.owner), quote_identifier(now.owner)
        hint = f"find out whether it is the same table; then {store}"
        if before.owner_oid is not None and before.owner_oid == now.owner_oid:
            hint = f"if ALTER ROLE {old} RENAME TO {new} was meant: {store}"
            yield Change(None, f"its owner {old} seems to be called {new} now", hint)
            return
        yield Change(None, f"it belongs to {new} now, and belonged to {old}", hint)


def _of_access(before: Shape, now: Shape, table: TableName) -> Iterator[Change]:
    if now.row_security and not before.row_security:
        hint = f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY, if all rows may be published"
        yield Change(None, "row-level security was switched on", hint)
    if now.forced and not before.forced:
        hint = f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, if all rows may be published"
        yield Change(None, "row-level security was forced on its owner", hint)


def _of_family(before: Shape, now: Shape, review: str) -> Iterator[Change]:
    if now.foreign_parts and not before.foreign_parts:
        yield Change(None, "some of its rows are in a foreign table now", review)
    # Partitions of a partitioned table come and go, and are its own.
    if now.relkind == "r" and now.has_children and not before.has_children:
        yield Change(None, "other tables inherit from it now", review)
    if now.has_parents and not before.has_parents:
        yield Change(None, "it has a parent now, whose readers can read it", review)


def _of_definition(before: Shape, now: Shape, review: str) -> Iterator[Change]:
    if before.definition != now.definition:
        yield Change(None, "the view, or one that it is made of, is defined otherwise now", review)


def _of_columns(before: Shape, now: Shape, review: str, *, drops_rest: bool) -> Iterator[Change]:
    gone = [column for column in before.columns if now.column(column.name) is None]
    new = {column.number: column for column in now.columns if before.column(column.name) is None}
    for column in gone:
        renamed = new.pop(column.number, None)
        if renamed is None:
            yield Change(column.name, "was dropped", review)
        else:
            name = quote_identifier(renamed.name)
            yield Change(column.name, f"was renamed to {name}, which has no role", review)
    # If a column is missing, a new one may be that column under another name.
    is_dropped = drops_rest and not gone
    reason = "is new, and left out" if is_dropped else "is new and has no role"
    for column in new.values():
        yield Change(column.name, reason, review, stops=not is_dropped)
    for old in before.columns:
        present = now.column(old.name)
        if present is not None and present.type != old.type:
            yield Change(old.name, f"is of type {present.type} now, and was {old.type}", review)
    yield from _of_order(before, now, review)


def _of_labels(before: Shape, now: Shape, table: TableName, store: str) -> Iterator[Change]:
    """Yield the enums that lost or reordered labels; new labels are values."""
    for old in before.columns:
        present = now.column(old.name)
        if old.labels is None or present is None or present.labels is None:
            continue
        known = set(old.labels)
        if tuple(label for label in present.labels if label in known) != old.labels:
            gone = len(known.difference(present.labels))
            reason = (
                f"has an enum of which {gone} labels were renamed"
                if gone
                else ("has an enum whose labels are in another order now")
            )
            publish = command("dbanon publish", table, options="--new-series --recipients-changed")
            hint = f"rename them back; or {store}, then {publish}, as releases keep the old names"
            yield Change(old.name, reason, hint)


def _of_order(before: Shape, now: Shape, review: str) -> Iterator[Change]:
    """Yield the columns with names of others: swapped, or created again (number increased)."""
    reason = "is another column than before under the same name"
    if now.definition is None:
        numbers = {column.name: column.number for column in now.columns}
        made_again = [c.name for c in before.columns if numbers.get(c.name, 0) > c.number]
        if made_again:
            yield from (Change(name, reason, review) for name in made_again)
            return
    old = [column.name for column in before.columns if now.column(column.name) is not None]
    new = [column.name for column in now.columns if before.column(column.name) is not None]
    for name, other in zip(old, new, strict=True):
        if name != other:
            yield Change(name, reason, review)


def _of_key(before: Shape, now: Shape, review: str) -> Iterator[Change]:
    if before.key and not now.key:
        yield Change(None, "its primary key was dropped", review)
    elif before.key != now.key:
        names = ", ".join(map(quote_identifier, now.key))
        yield Change(None, f"its primary key is another one now: {names}", review)
    for name in before.key:
        old, present = before.column(name), now.column(name)
        if old is not None and present is not None and present.nullable and not old.nullable:
            yield Change(name, "may be NULL now, and was part of the key", review)


def _of_taxonomies(before: Baseline, now: Baseline, review: str) -> Iterator[Change]:
    for name, version in before.taxonomies.items():
        present = now.taxonomies.get(name)
        if present is not None and present != version:
            reason = f"taxonomy {name} is at version {present} now, and was at {version}"
            yield Change(None, reason, review)
