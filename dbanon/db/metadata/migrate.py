"""Install and upgrade the metadata schema, and check that it is current."""

from __future__ import annotations

import hashlib
import io
import re
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import sql

from dbanon import resources
from dbanon.db import schemas
from dbanon.db.metadata.damage import missing
from dbanon.db.models import functions
from dbanon.db.queries import SETTINGS, printed, query, template
from dbanon.db.schemas import DATA_SCHEMA, SCHEMA
from dbanon.db.session import Session, connect
from dbanon.domain.errors import NotPermitted, SchemaOutOfDate
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import command as shell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import sqlalchemy as sa
    from alembic.config import Config

    from dbanon.domain.outcomes import Operation
    from dbanon.settings import Settings

# The newest revision under migrations/versions; a test holds the two together.
REVISION = "0023"

_INIT = "dbanon init"
_FIRST = "0015"  # the first revision; those before it were never released
_STAMPED = re.compile(r"dbanon metadata: revision (\w+),")


@cache
def stamp() -> str:
    """Return the comment of an up-to-date schema: its revision and a digest of its functions."""
    digest = hashlib.sha256()
    for statement in functions.statements():
        digest.update(statement.as_string().encode())
    return f"dbanon metadata: revision {REVISION}, functions {digest.hexdigest()[:16]}"


class Installed(NamedTuple):
    """The result of ``install``; former: the previous revision, None if there was none."""

    changed: bool
    former: str | None


def install(session: Session) -> Installed:
    """Create or update both schemas, tables and functions in the open transaction.

    Missing parts are created again, unless their contents are lost. Raises SchemaOutOfDate if a
    newer or an unreleased dbanon initialized the database. Concurrent runs wait for each other.
    """
    return session.unless_overtaken(partial(_install, session))


def _install(session: Session) -> Installed:
    _refuse_strangers(session)
    revision, installed = state(session)
    whole = revision is not None and not any(part.mendable for part in missing(session))
    if whole and installed == stamp():
        return Installed(changed=False, former=revision)
    known = revision
    if revision is None and installed is not None:  # Alembic's row or table is missing
        found = _STAMPED.match(installed)
        revision = found[1] if found else None
    if revision is not None and revision > REVISION:
        raise SchemaOutOfDate(
            f"the metadata schema has revision {revision}, newer than this program's {REVISION}",
            hint="pip install --upgrade dbanon",
        )
    if revision is not None and revision < _FIRST:
        raise SchemaOutOfDate(
            f"the metadata schema has revision {revision}, and this program upgrades those from"
            f" {_FIRST} on; nothing was changed",
            hint=f"{_INIT} from a checkout of the last commit whose migrations/versions has"
            f" {revision} and {_FIRST}, then {_INIT} of this program: everything is kept",
        )
    for schema in (SCHEMA, DATA_SCHEMA):
        if session.pg.execute(query("catalog.schema_exists"), (schema,)).fetchone() is None:
            _create_schema(session, schema)
    with _sqlalchemy(session.pg) as connection:
        _upgrade(connection, lost=None if known == revision else revision)
        made = _mend_tables(session, connection)
    _grant_on(session, made)
    for statement in _function_statements():
        session.pg.execute(statement)
    return Installed(changed=True, former=revision)


def _create_schema(session: Session, schema: str) -> None:
    """Create a metadata schema; raises NotPermitted with the command for a DBA."""
    role = (session.pg.execute("SELECT current_user").fetchone() or ("",))[0]
    try:
        session.pg.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    except psycopg.errors.InsufficientPrivilege:
        raise NotPermitted(
            f"{quote_identifier(role)} may not create schemas in this database",
            hint=f"let the owner of the database run: {shell(f'{_INIT} --role', role)}; or what"
            f" {shell(f'{_INIT} --print-sql --role', role)} prints",
        ) from None


class _SharedTransaction:
    """A connection of psycopg without the means to end its open transaction."""

    def __init__(self, pg: psycopg.Connection) -> None:
        self._pg = pg

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever psycopg has
        return getattr(self._pg, name)

    def commit(self) -> None:
        """Leave the transaction open."""

    rollback = close = commit


@contextmanager
def _sqlalchemy(pg: psycopg.Connection) -> Iterator[sa.Connection]:
    """Lend the open transaction to SQLAlchemy, for Alembic; failures are errors of psycopg."""
    import sqlalchemy as sa

    engine = sa.create_engine(
        "postgresql+psycopg://",
        creator=lambda: _SharedTransaction(pg),
        poolclass=sa.StaticPool,
        use_native_hstore=False,
    )
    try:
        with engine.begin() as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        raise (error.orig or error) from None


def _mend_tables(session: Session, connection: sa.Connection) -> list[str]:
    """Create missing tables and columns; returns the tables, which have no grants yet."""
    from alembic.ddl.base import AddColumn

    from dbanon.db.metadata.tables import metadata

    lost = missing(session)
    made = [part.name for part in lost if part.kind == "table"]
    if made:
        metadata.create_all(connection, tables=[metadata.tables[f"{SCHEMA}.{n}"] for n in made])
    for table, statement in _CONTENTS.items():
        if table in made:
            session.pg.execute(query(statement))
    for part in lost:
        if part.kind == "column" and part.mendable:
            table, _, column = part.name.partition(".")
            described = metadata.tables[f"{SCHEMA}.{table}"].columns[column]
            connection.execute(AddColumn(table, described, schema=SCHEMA))
    session.pg.execute(query("metadata.number_on"))
    return made


# What is known of the contents of a recreated table.
_CONTENTS = {
    "spending": "metadata.note_loss",
    "account": "metadata.open_accounts",
    "policy_version": "metadata.first_versions",
    "approval_demand": "metadata.demand_again",
}


def _upgrade(connection: sa.Connection, *, lost: str | None) -> None:
    """Run the pending revisions; lost: the revision that Alembic's table should have."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    if lost is not None:
        command.stamp(config, lost)
    command.upgrade(config, REVISION)


def _grant_on(session: Session, made: list[str]) -> None:
    """Grant publishers their rights on recreated tables, and no others."""
    publishers = session.pg.execute(query("metadata.publishers"), {"made": made}).fetchall()
    for (role,) in publishers if made else ():
        with session.pg.transaction(force_rollback=True):
            session.pg.execute(_everyday_rights(role, DATA_SCHEMA))
            asked = {"made": made, "role": role}
            grants = session.pg.execute(query("metadata.rights_on"), asked).fetchall()
        for (grant,) in grants:
            session.pg.execute(grant)


def grant_everyday(session: Session, role: str, *, views: str) -> None:
    """Grant a role all rights to publish, except those on source tables.

    Refuses schemas of extensions.
    """
    row = session.pg.execute(query("metadata.extension_in"), (views,)).fetchone()
    if row is not None:
        raise NotPermitted(
            f"schema {quote_identifier(views)} is that of the extension {quote_identifier(row[0])}",
            hint=f"{_INIT} --role ... --schema another_one, and DBANON_SCHEMA for what comes then",
        )
    schemas.ensure(session, views)
    session.pg.execute(_everyday_rights(role, views))


def grant_approval(session: Session, role: str) -> None:
    """Grant a role the rights to read and approve policies."""
    session.pg.execute(template("session.grant_approval", role=sql.Identifier(role)))


# An empty database has no trigger that could be dropped before one is made.
_NO_NOTICES = "SET LOCAL client_min_messages = warning"


def script(
    *,
    role: str | None = None,
    owner: str | None = None,
    views: str,
    approver: str | None = None,
    require_approval: bool = False,
) -> str:
    """Return the SQL of ``install`` on an empty database, for a DBA.

    role: the everyday role, which gets all rights for publishing except on tables; owner: the owner
    of all objects, by default the current role; views: the schema of published views; approver: a
    role that may approve policies; require_approval: whether others publish nothing.
    """
    from alembic import command

    output = io.StringIO()
    command.upgrade(_config(output), REVISION, sql=True)
    tables = output.getvalue().removeprefix("BEGIN;").rstrip().removesuffix("COMMIT;").strip()
    functions = _statements(_function_statements())
    parts = [
        "BEGIN;\n" + "\n".join(f"{setting};" for setting in (*SETTINGS, _NO_NOTICES)),
        _statements(_schema_statements(role=role, owner=owner, views=views)),
        tables,
        functions,
    ]
    if require_approval:
        parts.append(_statements([query("metadata.demand_approval")]))
    if owner is not None:
        parts.append("RESET ROLE;")
    if approver is not None:
        grants = template("session.grant_approval", role=sql.Identifier(approver))
        parts.append(printed(grants).rstrip())
    if role is not None:
        parts.append(printed(_everyday_rights(role, views)).rstrip())
    return "\n\n".join([*parts, "COMMIT;\n"])


def _everyday_rights(role: str, views: str) -> sql.Composed:
    slots = {"role": sql.Identifier(role), "views": sql.Identifier(views)}
    return template("session.grant_everyday", **slots)


def _schema_statements(
    *, role: str | None, owner: str | None, views: str
) -> Iterator[sql.Composed]:
    """Yield the statements that create the schemas, and SET ROLE to the owner, if there is one."""
    names = [SCHEMA, DATA_SCHEMA]
    if role is not None or owner is not None:
        names.append(views)
    whose: sql.Composable = sql.SQL("")
    if owner is not None:
        whose = sql.SQL(" AUTHORIZATION {}").format(sql.Identifier(owner))
    for name in names:
        yield sql.SQL("CREATE SCHEMA {}{}").format(sql.Identifier(name), whose)
    if owner is not None:
        yield sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(owner))


def _statements(statements: Iterable[sql.SQL | sql.Composed]) -> str:
    return "\n\n".join(printed(s).rstrip().rstrip(";") + ";" for s in statements)


def state(session: Session) -> tuple[str | None, str | None]:
    """Return the installed revision and the stamp, None if missing.

    Raises NotPermitted, and SchemaOutOfDate if more than one revision is listed.
    """
    row = session.pg.execute(query("metadata.state")).fetchone()
    if row is None:
        return None, None
    exists, readable, installed = row
    if not exists:
        return None, installed
    if not readable:
        raise NotPermitted(
            "this role may not read the metadata schema",
            hint="ask its owner for the rights of a steward; dbanon check needs none of them",
        )
    rows = session.pg.execute("SELECT version_num FROM dbanon.alembic_version").fetchall()
    if len(rows) > 1:
        raise SchemaOutOfDate(
            f"dbanon.alembic_version has {len(rows)} rows, and only one revision is installed",
            hint=f"delete the rows of the others, as the owner of the table; then {_INIT}",
        )
    return (rows[0][0] if rows else None), installed


def require_current(session: Session) -> None:
    """Raise SchemaOutOfDate unless the metadata schema is that of this program."""
    revision, installed = state(session)
    if revision is None:
        lost = "the metadata schema has lost its revision"
        yet = "this database has no dbanon metadata schema yet"
        raise SchemaOutOfDate(yet if installed is None else lost, hint=_INIT)
    if installed != stamp():
        different = f"the metadata schema (revision {revision}) is not that of this program"
        if revision == REVISION:
            raise SchemaOutOfDate(f"{different}: functions differ", hint=_INIT)
        raise SchemaOutOfDate(f"{different} (revision {REVISION})", hint=_INIT)
    _refuse_strangers(session)


def _refuse_strangers(session: Session) -> None:
    """Raise NotPermitted if an untrusted role owns a part of the metadata."""
    row = session.pg.execute(query("metadata.strangers")).fetchone()
    if row is not None:
        owned, owner = row
        raise NotPermitted(
            f"{owned} belongs to {quote_identifier(owner)}, who could let any check pass",
            hint="let this role, the owner of the database or a superuser own the schemas dbanon"
            " and dbanon_data and all that is in the first",
        )


@contextmanager
def current_session(settings: Settings, *, operation: Operation | None = None) -> Iterator[Session]:
    """Open a transaction with a current metadata schema; it can write only with an operation."""
    with (
        connect(settings, writes=operation is not None) as session,
        session.transaction(operation=operation),
    ):
        require_current(session)
        yield session


def _function_statements() -> list[sql.SQL | sql.Composed]:
    statements: list[sql.SQL | sql.Composed] = [*functions.statements()]
    comment = sql.SQL("COMMENT ON SCHEMA {} IS {}")
    statements.append(comment.format(sql.Identifier(SCHEMA), sql.Literal(stamp())))
    return statements


def _config(output: io.StringIO | None = None) -> Config:
    from alembic.config import Config

    config = Config(output_buffer=output)
    config.set_main_option("script_location", str(resources.migrations()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
