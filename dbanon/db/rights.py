"""Grant and revoke access to a release, and prove that its readers cannot read the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from dbanon.db.queries import query, relation, template
from dbanon.db.schemas import DATA_SCHEMA, SCHEMA
from dbanon.domain.errors import ConfigError, NotPermitted
from dbanon.domain.notices import Notice, Topic
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import psycopg

    from dbanon.db.session import Session


# A new way is a query of this shape: reader, acting, kind, schema, name, and True if the acting
# role was given the right itself; and a line for its kind below.
_WAYS = (
    "reach.by_reading",
    "reach.by_writing",
    "reach.by_rules",
    "reach.by_code",
    "reach.by_defaults",
    "reach.by_server",
    "reach.by_foreign_servers",
)
_WAYS_OF_LIVE_VIEWS = ("reach.in_statements",)
_SIGNS = ("reach.signs",)

# A right on a relation that lets the owner of a view, a rule or a function use it for others.
_USES = {
    "uses": "SELECT, INSERT, UPDATE, DELETE, TRUNCATE",
    "uses_columns": "SELECT, INSERT, UPDATE",
}
# Relations that rules may use: private ones, and tables with policies that use these.
_PARTS = ("part_classes", "part_oids", "part_needed", "part_ways")

_MEANINGS = {
    "table": "can read {what}",
    "view": "can read {what}, a view of what is private",
    "materialized view": "can read {what}, a materialized view of what is private",
    "foreign table": "can read {what}, a foreign table of what is private",
    "TOAST table": "can read {what}, where long values of what is private are",
    "function": "can call {what}, which reads what is private as its owner",
    "writing": "can write {what}",
    "rule": "can write {what}, and a rule of it reads what is private",
    "policy": "can write {what}, a view of a table whose row-level policy reads what is private",
    "trigger": "can put a trigger on {what}, which sees the rows that others write",
    "references": "can point a foreign key at {what}, and try out values of its keys",
    "maintenance": "can lock and rebuild {what} (MAINTAIN)",
    "schema": "can create objects in the schema {schema}",
    "code": "owns the function {what}, which runs when others read or write what is private",
    "type": "owns the type {what}, whose functions run when others read or write what is private",
    "between": "can write {what}, and look at the live view between two rows of a statement",
    "near trigger": "can put a trigger on {what}, and look at the live view from it while"
    " foreign keys write the source",
    "default privileges": "is given {name} in {schema} by default",
    "replication": "can replicate what is private",
    "roles": "can grant itself any role (CREATEROLE)",
    "files": "can read the files of the server",
    "file function": "can call {what}, which gets at the files of the server",
    "statements": "can read the statements that others run, and the values in them",
    "statistics": "can read {what}, where values of all tables are",
    "foreign server": "can log in to this database by the foreign server {name}, perhaps as"
    " somebody else",
    "sign": "can call {what}, which runs as its owner and seems to read what is private",
    "sign of a trigger": "can set off {what} by writing, and it seems to read what is private with"
    " the rights of another role",
    "sign of an event trigger": "can set off {what} by changing definitions, and it seems to read"
    " what is private with the rights of another role",
    "sign of a file": "can read {what}, which shows a file of the server, perhaps of what is"
    " private",
}
_REMEDIES = {
    "code": "give the function to another owner",
    "type": "give the type to another owner",
    "function": "revoke EXECUTE from PUBLIC and whoever else has it",
    "rule": "drop the rule",
    "policy": "drop the policy, or take the right from {acting}",
    "sign": "look at its body, and if it does, revoke EXECUTE from PUBLIC and whoever else has it",
    "sign of a trigger": "look at its body, and if it does, drop the trigger",
    "sign of an event trigger": "look at its body, and if it does, drop the event trigger",
    "sign of a file": "look at the file, and if it shows that, take the right from {acting}",
    "default privileges": "ALTER DEFAULT PRIVILEGES ... REVOKE",
    "replication": "ALTER ROLE {acting} NOREPLICATION",
    "roles": "ALTER ROLE {acting} NOCREATEROLE",
}


class Reach(NamedTuple):
    """An access path: a reader, the role with the right, and the kind and name of the object."""

    reader: str
    acting: str
    kind: str
    schema: str
    name: str

    def __str__(self) -> str:
        """Describe the path, with the role that has the right if it is not the reader."""
        means = _MEANINGS[self.kind].format(
            what=TableName(self.schema, self.name),
            schema=visible(self.schema),
            name=visible(self.name),
        )
        if self.kind == "replication" and self.name:
            means += f" (publication {visible(self.name)})"
        role = "" if self.acting == self.reader else f" as {visible(self.acting)}"
        return f"{visible(self.reader)} {means}{role}"

    @property
    def notice(self) -> Notice:
        """The path as a warning, with its remedy as hint."""
        what = TableName(self.schema, self.name)
        message = f"{visible(self.reader)} may read private data by {what}"
        return Notice(Topic.INDIRECT_ACCESS, message, f"{self}: {self.remedy}")

    @property
    def remedy(self) -> str:
        """The command that closes the path, as the beginning of a hint."""
        acting = self.acting if self.acting == "PUBLIC" else quote_identifier(self.acting)
        return _REMEDIES.get(self.kind, "take the right from {acting}").format(acting=acting)


def targets_of(
    session: Session, *, published: int, sources: Sequence[int]
) -> list[Mapping[str, object]]:
    """Return the private objects, readers and views from which all path queries start; slow.

    Without readers of the release, there are no paths, and nothing else is looked for.
    """
    where: list[dict[str, object]]
    where = [{"published": published, "source": source, **_USES} for source in sources]
    nothing = _private([]) | _arrays([], "scene", "written")
    with session.sparing_memory():
        # If nothing is private, more views of the release count as the release.
        readers = [_ask(session, "reach.readers", each | nothing) for each in where]
    found = [_readers(one.fetchall()) for one in readers]
    if not any(one["all_readers"] for one in found):
        return [each | nothing | one for each, one in zip(where, found, strict=True)]
    with session.sparing_memory():
        private = [_ask(session, "reach.private", each) for each in where]
    where = [each | _private(found.fetchall()) for each, found in zip(where, private, strict=True)]
    with session.sparing_memory():
        scenes = [_ask(session, "reach.scene", each) for each in where]
        readers = [_ask(session, "reach.readers", each) for each in where]
    return [
        each | _arrays(scene.fetchall(), "scene", "written") | _readers(found.fetchall())
        for each, scene, found in zip(where, scenes, readers, strict=True)
    ]


def reach_of(session: Session, targets: Iterable[Mapping[str, object]]) -> list[Reach]:
    """Return every access path of readers of a release to its private data.

    targets: the result of ``targets_of`` in this transaction. For a live view, paths include
    reading it between two rows of one statement.
    """
    each = [(_WAYS + (_WAYS_OF_LIVE_VIEWS if one["scene"] else ()), one) for one in targets]
    return _found(session, each)


def signs_of(session: Session, targets: Iterable[Mapping[str, object]]) -> list[Reach]:
    """Return possible access paths, which the catalogs cannot confirm."""
    return _found(session, [(_SIGNS, one) for one in targets])


def _private(found: Sequence[tuple[Any, ...]]) -> dict[str, object]:
    """Convert the private objects into parameters of the other queries."""
    private = dict.fromkeys(row[:5] for row in found if row[6] != "policy")
    return {
        **_arrays([(*row[:2], *row[5:]) for row in found], *_PARTS),
        **_arrays(list(private), "classes", "oids", "origins", "itself"),
        "relations": [oid for _, oid, _, _, is_relation in private if is_relation],
        "functions": [oid for _, oid, _, _, is_relation in private if not is_relation],
        "family": [oid for _, oid, _, itself, _ in private if itself],
    }


def _readers(found: Sequence[tuple[Any, ...]]) -> dict[str, object]:
    """Convert the readers into parameters; those through PUBLIC only count within statements."""
    known = [row for row in found if not row[3]]
    return {
        **_arrays(known, "readers", "roles", "names"),
        **_arrays(found, "all_readers", "all_roles", "all_names"),
    }


def _ask(session: Session, name: str, where: Mapping[str, object]) -> psycopg.Cursor[Any]:
    shared = {"parts": query("identity.parts_of_read"), "scene": query("reach.scene")}
    return session.pg.execute(template(name, **shared), where)


def _arrays(rows: Sequence[Sequence[object]], *names: str) -> dict[str, object]:
    """Convert rows into one array per column, as unnest() takes them."""
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _found(
    session: Session, each: Sequence[tuple[Iterable[str], Mapping[str, object]]]
) -> list[Reach]:
    """Run the queries of each target; keep one role per path, preferably a direct grantee."""
    with session.sparing_memory():
        asked = [
            [_ask(session, way, subject) for way in ways]
            for ways, subject in each
            if subject["all_readers"]
        ]
    return sorted({one for ways in asked for one in _named(ways)}, key=_severity)


def _named(ways: Iterable[psycopg.Cursor[Any]]) -> list[Reach]:
    found: dict[Reach, tuple[bool, bool, str]] = {}
    for way in ways:
        for *words, given in way:
            reach = Reach(*words)
            order = (not given, reach.acting != reach.reader, reach.acting)
            thing = reach._replace(acting="")
            found[thing] = min(order, found.get(thing, order))
    return [thing._replace(acting=acting) for thing, (_, _, acting) in found.items()]


def _severity(reach: Reach) -> tuple[str, int, bool, str, str]:
    """Sort key: by reader, direct paths first, the source before metadata."""
    is_metadata = reach.schema in {SCHEMA, DATA_SCHEMA}
    return reach.reader, list(_MEANINGS).index(reach.kind), is_metadata, reach.schema, reach.name


Statement = sql.Composed


def require_roles(session: Session, roles: Sequence[str]) -> None:
    """Raise ConfigError if a grantee is not a role of this server; PUBLIC always is."""
    asked = [role for role in roles if role != "public"]
    known = session.pg.execute(query("rights.existing_roles"), (asked,)).fetchall() if asked else ()
    if missing := [role for role in asked if (role,) not in known]:
        raise ConfigError(
            f"there is no role {', '.join(missing)}",
            hint='createuser, or CREATE ROLE "name" LOGIN in psql; on the embedded server,'
            " in dbanon server psql -- -U postgres",
        )


def has_ledger(session: Session) -> bool:
    """Return True if the current role may read the ledger."""
    return session.one(query("rights.has_ledger")) == (True,)


def lacking_temporary(session: Session, role: str) -> str | None:
    """Return the GRANT that a role needs to create temporary tables, None if it may."""
    row = session.pg.execute(query("rights.temporary"), (role,)).fetchone()
    if row is None or row[0]:
        return None
    database, grantee = quote_identifier(row[1]), quote_identifier(role)
    return f"GRANT TEMPORARY ON DATABASE {database} TO {grantee}"


def grant_statements(view: TableName, roles: Sequence[str]) -> Iterator[sql.Composed]:
    """Yield the grants that let roles read a release and check it."""
    for role in roles:
        grantee = sql.Identifier(role)
        for schema in (view.schema or "public", SCHEMA):
            yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), grantee)
        yield sql.SQL("GRANT SELECT ON {} TO {}").format(relation(view), grantee)


def revoke_statement(view: TableName, role: str) -> sql.Composed:
    """Compose the REVOKE of a release from a role, and from its own grantees."""
    return sql.SQL("REVOKE ALL ON {} FROM {} CASCADE").format(relation(view), sql.Identifier(role))


def take_from_all(session: Session, name: TableName) -> None:
    """Revoke a relation from all but its owner; takes no lock that conflicts with readers."""
    grants = session.pg.execute(query("rights.grants"), (name.schema, name.name)).fetchall()
    for role in {grantee or "public" for grantee, *_ in grants}:
        session.pg.execute(revoke_statement(name, role))


def schema_statement(schema: str, role: str) -> sql.Composed:
    """Compose the REVOKE of USAGE on a schema."""
    return sql.SQL("REVOKE USAGE ON SCHEMA {} FROM {}").format(
        sql.Identifier(schema), sql.Identifier(role)
    )


class Direct(NamedTuple):
    """A right granted to a role directly; schema is None for a right on the relation."""

    role: str
    schema: str | None
    privilege: str
    grantor: str


def direct_grants(
    session: Session, roles: Sequence[str], *, published: int, schemas: Sequence[str]
) -> list[Direct]:
    """Return the rights that roles were granted directly, on a relation and on schemas."""
    parameters = {"roles": list(roles), "published": published, "schemas": list(schemas)}
    return [Direct(*row) for row in session.pg.execute(query("rights.direct_grants"), parameters)]


def needed_schemas(
    session: Session,
    roles: Sequence[str],
    *,
    schemas: Sequence[str],
    served: Mapping[str, str | None],
) -> dict[tuple[str, str], str]:
    """Return by role and schema an object for which the role needs USAGE; served: name patterns."""
    parameters = {
        "roles": list(roles),
        "schemas": list(schemas),
        "endings": list(served),
        "comments": list(served.values()),
    }
    rows = session.pg.execute(query("rights.needed_schemas"), parameters).fetchall()
    return {(role, schema): name for role, schema, name in rows}


def still_readable_by(session: Session, roles: Sequence[str], *, published: int) -> list[str]:
    """Return the roles that can read a relation, by any right."""
    parameters = {"roles": list(roles), "published": published}
    return [row[0] for row in session.pg.execute(query("rights.still_readable_by"), parameters)]


def readers(session: Session, relations: Sequence[int], *, source: int) -> set[str]:
    """Return the roles that can read some relations, but not the source, and are not owners."""
    if not relations:
        return set()
    parameters = {"relations": list(relations), "source": source}
    return {row[0] for row in session.pg.execute(query("rights.readers"), parameters)}


def require_readable(session: Session, roles: Sequence[str], *, published: int) -> None:
    """Raise NotPermitted if a grant had no effect: without grant option GRANT only warns."""
    asked = {"roles": list(roles), "published": published}
    rows = session.pg.execute(query("rights.unreadable_by"), asked).fetchall() if roles else ()
    if rows:
        raise NotPermitted(
            f"{', '.join(row[0] for row in rows)} cannot read the release after the grant",
            hint="let the owner of the schema grant USAGE on it",
        )


def require_separation(session: Session, *, published: int, sources: Sequence[int]) -> list[Reach]:
    """Raise NotPermitted for access paths to private data; returns possible ones, for review."""
    targets = targets_of(session, published=published, sources=sources)
    ways = reach_of(session, targets)
    if ways:
        told = "; ".join(str(way) for way in ways[:5])
        more = f"; and {len(ways) - 5} more" if len(ways) > 5 else ""  # noqa: PLR2004
        raise NotPermitted(
            f"a reader of the release can also read hidden data: {told}{more}",
            hint=f"{ways[0].remedy}, or grant the release to another role",
        )
    return signs_of(session, targets)
