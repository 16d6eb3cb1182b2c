"""Build, publish and withdraw the relations of a release."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
from psycopg import sql

from dbanon.db.guards import drop_guards, guard_statements
from dbanon.db.metadata import DATA_SCHEMA
from dbanon.db.promise import describe_promise
from dbanon.db.published import published_type
from dbanon.db.queries import identifiers, relation, template
from dbanon.db.transfer import copy_statement, write
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.db.session import Session
    from dbanon.domain.assignment import Assignment, GroupValues
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo, TableName


@dataclass(frozen=True, slots=True)
class Publication:
    """One release about to be published; ``id`` names its private tables."""

    id: int
    info: TableInfo
    policy: Policy
    kind: ReleaseKind
    view: TableName
    recodings: tuple[tuple[str, str], ...]
    """(column, recoding) of every quasi-identifier, in policy order."""
    trees: Mapping[str, object] = field(default_factory=dict)
    """The taxonomies of sensitive columns that the promise needs, as its comment holds them."""

    @property
    def rows(self) -> sql.Identifier:
        """The private membership table."""
        return data_table("rows", self.id)

    @property
    def groups(self) -> sql.Identifier:
        """The private table of group values."""
        return data_table("groups", self.id)

    @property
    def release(self) -> sql.Identifier:
        """The private copy that a table release is served from."""
        return data_table("release", self.id)

    @property
    def source(self) -> sql.Identifier:
        """The table that is published."""
        return relation(self.info.name)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key in ``rows``: never those of the source, so none can collide."""
        return tuple(f"k{i}" for i in range(1, len(self.info.primary_key) + 1))

    def keys(self, *, of: str) -> list[sql.Composed]:
        """Compose the primary key of the relation ``of``, without its domains.

        The constraints of a domain are code that COPY would run, and equality knows base types.
        """
        columns = [self.info.column(name) for name in self.info.primary_key]
        return [
            sql.SQL("{}::{}").format(
                sql.Identifier(of, column.name),
                sql.Identifier(column.base_schema, column.base_type),
            )
            for column in columns
        ]

    @property
    def join(self) -> sql.Composed:
        """Rows ``r`` of the membership are rows ``s`` of the source."""
        return sql.SQL(" AND ").join(
            sql.SQL("r.{} = {}").format(sql.Identifier(name), key)
            for name, key in zip(self.key_columns, self.keys(of="s"), strict=True)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The published columns, in the order of the source."""
        roles = {rule.column: rule.role for rule in self.policy.columns}
        return tuple(
            column.name for column in self.info.columns if roles[column.name] is not Role.IDENTIFIER
        )

    @property
    def types(self) -> tuple[str, ...]:
        """The published type of every quasi-identifier, in policy order."""
        return tuple(published_type(r, self.info.column(c)) for c, r in self.recodings)

    def columns(self) -> sql.Composed:
        """Compose the select list: recoded columns from the groups, all others from the source."""
        quasi = {column: f"q{i}" for i, (column, _) in enumerate(self.recodings, 1)}
        return sql.SQL(", ").join(
            sql.SQL("g.{} AS {}").format(sql.Identifier(quasi[name]), sql.Identifier(name))
            if name in quasi
            else sql.SQL("s.{}").format(sql.Identifier(name))
            for name in self.names
        )


def data_table(prefix: str, release_id: int) -> sql.Identifier:
    """Name a private object of a release."""
    return sql.Identifier(DATA_SCHEMA, f"{prefix}_{release_id}")


def build_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield what makes the empty private tables."""
    keys = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(key, sql.Identifier(name))
        for name, key in zip(publication.key_columns, publication.keys(of="s"), strict=True)
    )
    yield template("create_rows", rows=publication.rows, keys=keys, source=publication.source)
    recoded = sql.SQL(",\n    ").join(
        sql.SQL("{} {}{}").format(
            sql.Identifier(f"q{i}"),
            sql.Identifier("pg_catalog", published.removesuffix("[]")),
            sql.SQL("[]" if published.endswith("[]") else ""),
        )
        for i, published in enumerate(publication.types, 1)
    )
    yield template("create_groups", groups=publication.groups, columns=recoded)


def serve_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield what the published view needs below it: a filled copy, or guards on the source."""
    if publication.kind is ReleaseKind.VIEW:
        yield from guard_statements(publication)
        return
    yield template(
        "create_release",
        release=publication.release,
        columns=publication.columns(),
        source=publication.source,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
    )


def view_statement(publication: Publication) -> sql.Composed:
    """Compose the view that readers see."""
    view, names = relation(publication.view), identifiers(publication.names)
    if publication.kind is ReleaseKind.TABLE:
        columns = identifiers(publication.names, of="s")
        return template(
            "publish_table", view=view, names=names, columns=columns, release=publication.release
        )
    return template(
        "publish_view",
        view=view,
        names=names,
        columns=publication.columns(),
        source=publication.source,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
    )


def comment_statement(publication: Publication) -> sql.Composed:
    """Compose the comment in which the view states what it promises."""
    return sql.SQL("COMMENT ON VIEW {} IS {}").format(
        relation(publication.view), sql.Literal(describe_promise(publication))
    )


def copy_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield the COPY commands that fill the private tables, for printing."""
    quasi = [f"q{i}" for i in range(1, len(publication.recodings) + 1)]
    for table, names in (
        (publication.rows, [*publication.key_columns, "group_id"]),
        (publication.groups, ["group_id", *quasi]),
    ):
        yield copy_statement(table, names)


def fill(
    session: Session,
    publication: Publication,
    keys: pa.Table,
    *,
    assignment: Assignment,
    values: GroupValues,
) -> None:
    """COPY membership and group values; suppressed rows stay out of both."""
    group = pa.array(assignment.group)
    rows = keys.rename_columns(list(publication.key_columns)).append_column("group_id", group)
    if assignment.n_suppressed:
        rows = rows.filter(pa.array(assignment.group >= 0))
    write(session, publication.rows, rows)
    columns = {"group_id": pa.array(range(values.n_groups), pa.int32())}
    for i, column in enumerate(values.columns, 1):
        labels = pa.array(column.labels, pa.string())
        columns[f"q{i}"] = labels.take(pa.array(column.index))
    try:
        write(session, publication.groups, pa.table(columns))
    except psycopg.DataError as error:
        raise _misfit(publication, error) from None


def _misfit(publication: Publication, error: psycopg.DataError) -> PolicyError:
    """Name the column whose published values its type cannot hold; the context also holds one."""
    found = re.search(r"\bq(\d+)\b", error.diag.context or "")
    names = [column for column, _ in publication.recodings]
    name = quote_identifier(names[int(found[1]) - 1]) if found else ", ".join(names)
    return PolicyError(
        f"column {name}: a published value has no place in its type (is it the greatest there is,"
        " or widened too far by snap?)",
        hint='give the column the recoding "interval-text", or a smaller snap',
    )


def drop_private(session: Session, release_id: int) -> None:
    """Remove the tables, guards and triggers of a release that nothing serves any more."""
    drop_guards(session, release_id)
    for prefix in ("release", "rows", "groups"):
        table = data_table(prefix, release_id)
        session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
