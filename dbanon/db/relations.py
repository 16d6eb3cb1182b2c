"""Build, publish and withdraw the relations of a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.guards import drop_guards, guard_statements
from dbanon.db.metadata import DATA_SCHEMA
from dbanon.db.promise import describe_promise
from dbanon.db.published import published_type
from dbanon.db.queries import identifiers, relation, template
from dbanon.db.seals import seal_statements, shape
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import Partition, TableInfo, TableName


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
    def draft(self) -> sql.Identifier:
        """The table that the private copy is made of, if it is drafted; only within publishing."""
        return data_table("draft", self.id)

    @property
    def persons(self) -> sql.Identifier:
        """The table of persons that models are proved of; only within publishing."""
        return data_table("persons", self.id)

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

    def members(self, columns: Mapping[str, sql.Identifier]) -> sql.Composed:
        """Select the class of each row of a live release with those of the columns, renamed."""
        selected = [
            sql.SQL(", s.{} AS {}").format(sql.Identifier(name), alias)
            for name, alias in columns.items()
        ]
        return self.live("live_members", columns=sql.SQL("").join(selected))

    def live(self, name: str, **slots: sql.Composable) -> sql.Composed:
        """Compose a template for the source, or for each of its partitions that hold rows.

        These are read by name, as they were when it was published: a partition attached later is
        not in the release, and one that is detached stays in it, guards and all.
        """
        parts = [(relation(leaf.name), self._join_leaf(i)) for i, leaf in self.numbered_leaves]
        return sql.SQL("\n UNION ALL\n").join(
            template(name, source=source, join=join, rows=self.rows, **slots)
            for source, join in parts or [(self.source, self.join)]
        )

    @property
    def numbered_leaves(self) -> list[tuple[int, Partition]]:
        """The partitions that hold rows, by the number that ``rows`` has for them."""
        return list(enumerate(self.info.leaves, 1))

    def _join_leaf(self, number: int) -> sql.Composed:
        return sql.SQL("{} AND r.leaf = {}").format(self.join, sql.Literal(number))

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

    @property
    def kept(self) -> tuple[str, ...]:
        """The published columns that are no quasi-identifiers, in the order of the source."""
        recoded = {column for column, _ in self.recodings}
        return tuple(name for name in self.names if name not in recoded)

    @property
    def drafted(self) -> bool:
        """Whether the copy can be made of what publishing has read, with no join to the source.

        So it can when all columns that are kept were read, as texts that give back the very value
        and make no type's code run.
        """
        sensitive = {rule.column for rule in self.policy.with_role(Role.SENSITIVE)}
        columns = [self.info.column(name) for name in self.kept]
        return self.kind is ReleaseKind.TABLE and all(
            column.name in sensitive
            and column.base_type in _EXACT_TEXTS
            and column.base_schema == "pg_catalog"
            and not column.is_domain
            for column in columns
        )

    def columns(self) -> sql.Composed:
        """Compose the select list: recoded columns from the groups, all others from ``s``."""
        place = {column: ("g", f"q{i}") for i, (column, _) in enumerate(self.recodings, 1)}
        if self.drafted:
            place |= {name: ("s", f"v{i}") for i, name in enumerate(self.kept, 1)}
        return sql.SQL(", ").join(
            sql.SQL("{} AS {}").format(sql.Identifier(*place[name]), sql.Identifier(name))
            if name in place
            else sql.SQL("s.{}").format(sql.Identifier(name))
            for name in self.names
        )


# Types whose every value is read back from its text, and read in as text by the source's reader.
# Not numeric, which is read without trailing zeros, nor char, which is read without its blanks.
_EXACT_TEXTS = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "name", "uuid"}
    | {"date", "timestamp", "timestamptz"}
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
    apart = publication.kind is ReleaseKind.VIEW and publication.info.leaves
    yield template(
        "create_rows",
        rows=publication.rows,
        keys=keys,
        leaf=sql.SQL(", 0 AS leaf" if apart else ""),
        source=publication.source,
    )
    recoded = sql.SQL(",\n    ").join(
        sql.SQL("{} {}{}").format(
            sql.Identifier(f"q{i}"),
            sql.Identifier("pg_catalog", published.removesuffix("[]")),
            sql.SQL("[]" if published.endswith("[]") else ""),
        )
        for i, published in enumerate(publication.types, 1)
    )
    yield template("create_groups", groups=publication.groups, columns=recoded)
    if publication.drafted:
        kept = [
            sql.SQL(", s.{} AS {}").format(sql.Identifier(name), sql.Identifier(f"v{i}"))
            for i, name in enumerate(publication.kept, 1)
        ]
        yield template(
            "create_draft",
            draft=publication.draft,
            columns=sql.SQL("").join(kept),
            source=publication.source,
        )


def serve_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield what the published view needs below it: a sealed copy, or guards on the source."""
    if publication.kind is ReleaseKind.VIEW:
        yield from guard_statements(publication)
        return
    yield from _copy_statements(publication)
    yield from seal_statements(publication.release, publication.id)


def _copy_statements(publication: Publication) -> Iterator[sql.Composed]:
    if publication.drafted:
        # Else PostgreSQL expects many groups of one number, and sorts the rows to join them.
        yield sql.SQL("ANALYZE {} (group_id)").format(publication.groups)
        yield template(
            "create_release_of_draft",
            release=publication.release,
            columns=publication.columns(),
            draft=publication.draft,
            groups=publication.groups,
        )
        yield sql.SQL("DROP TABLE {}").format(publication.draft)
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
    live = publication.live("live_rows", columns=publication.columns(), groups=publication.groups)
    return template("publish_view", view=view, names=names, live=live)


def comment_statement(publication: Publication) -> sql.Composed:
    """Compose the comment in which the view states what it promises."""
    return sql.SQL("COMMENT ON VIEW {} IS {}").format(
        relation(publication.view), sql.Literal(describe_promise(publication))
    )


def forget_statements(publication: Publication) -> Iterator[sql.Composed]:
    """Yield what drops the assignment of rows to classes, which a proved copy needs no more."""
    for table in (publication.rows, publication.groups):
        yield sql.SQL("DROP TABLE {}").format(table)


def drop_private(session: Session, release_id: int) -> None:
    """Remove the tables, types and guards of a release that nothing serves any more."""
    drop_guards(session, release_id)
    for prefix in ("release", "rows", "groups"):
        table = data_table(prefix, release_id)
        session.pg.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    session.pg.execute(sql.SQL("DROP TYPE IF EXISTS {}").format(shape(release_id)))
