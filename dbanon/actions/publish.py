"""Publish an anonymized relation of a table, proved by the database before anyone sees it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.actions.preparation.linked import prepare_linked
from dbanon.actions.preparation.loading import digest_of_rows, fingerprint
from dbanon.actions.preparation.prepare import in_force, prepare
from dbanon.actions.publication.series import key_of_persons, placed
from dbanon.actions.publication.sharing import require_unshared, share
from dbanon.actions.publication.steps import build, replaced, serve
from dbanon.domain.deeds import Deed
from dbanon.domain.errors import ConfigError
from dbanon.domain.progress import Stages
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName
from dbanon.domain.text import converted, unread
from dbanon.formats.datasets import Dataset, parse
from dbanon.formats.support import Mode, require
from dbanon.request import Request, spelled_out
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from dbanon.actions.distribution.dividing import Division
    from dbanon.actions.preparation.loading import Loaded
    from dbanon.actions.preparation.prepare import Prepared, Source
    from dbanon.actions.publication.steps import Built
    from dbanon.db.session import Session
    from dbanon.domain.composition import Gate
    from dbanon.domain.release import Release, Sharing
    from dbanon.domain.table import TableInfo

    Wanted = tuple[str | TableName, Request]
    """A table, and what is asked of its publication."""


def publish_request(table: str | TableName, request: Request) -> Release:
    """Publish a table by its stored policy and return the release; one transaction.

    The options go over the policy, as ``dbanon.request.Request`` describes them. A release already
    there is replaced atomically; if anything fails, it stays.

    Raises Unsatisfiable, PolicyError, TaxonomyError, DriftError, CheckFailed, NotPermitted,
    ConfigError, DatabaseError.
    """
    gate = request.gate
    stages, settings = request.stages or Stages(), request.settings or Settings.load()
    division = None
    if request.executor != "threads" or request.rows_per_block is not None:
        from dbanon.actions.distribution.dividing import division_of

        division = division_of(request.executor, request.rows_per_block)
    keep = not request.dry_run
    with publishing([(table, request)], settings, keep=keep) as (session, loaded):
        make = partial(publish_in, gate=gate, division=division)
        return make(session, loaded, request, stages)[0]


def publish_in(
    session: Session,
    loaded: Sequence[Loaded],
    request: Request,
    stages: Stages,
    *,
    gate: Gate,
    division: Division | None = None,
) -> list[Release]:
    """Publish a table, or those of a dataset, inside the open transaction of ``publishing``.

    division: how the table is divided into blocks, None where it is grouped in one piece.
    """
    if len(loaded) > 1:
        request = replace(request, dataset=tuple(str(one.info.name) for one in loaded))
        _require_apart(loaded, request)
    previous = [replaced(session, one.info, request) for one in loaded]
    gate, *_ = [placed(session, one.info, request, gate=gate) for one in loaded]
    ahead = Ahead(session, loaded[0], request, gate)
    prepared, sharing = _prepared(session, loaded, request, stages, ahead=ahead, division=division)
    built: list[Built] = []
    for one, entry in zip(prepared, previous, strict=True):
        key = _key_of(session, built[0]) if built else None  # that of the persons, who come first
        made = partial(build, session, one, request, stages, previous=entry, gate=gate)
        built.append(made(key=key, hashed=ahead.hashed))
    found = fingerprint(session, loaded, request, of_rows=ahead.of_rows)
    served = partial(serve, session, loaded, built, request, stages)
    first, *rest = served(gate=gate, fingerprint=found)
    return [replace(first, sharing=sharing), *rest]


def _prepared(
    session: Session,
    loaded: Sequence[Loaded],
    request: Request,
    stages: Stages,
    *,
    ahead: Ahead,
    division: Division | None,
) -> tuple[list[Prepared], Sharing | None]:
    """Group the rows in the way that fits: linked persons, blocks, earlier classes, or all anew."""
    gate = ahead.gate
    if len(loaded) > 1:
        return prepare_linked(session, loaded, request, stages, strict=gate.strict), None
    (one,) = loaded
    if division is not None:
        from dbanon.actions.distribution.dividing import prepare_in_blocks

        require_unshared(session, one, request, gate=gate)
        made = partial(prepare_in_blocks, division=division, strict=gate.strict)
    elif shared := share(session, one, request, stages, gate=gate):
        return [shared[0]], shared[1]
    else:
        made = partial(prepare, strict=gate.strict, meanwhile=ahead.working)
    return [made(session, one, request, stages)], None


def _key_of(session: Session, persons: Built) -> UUID | None:
    """Return the key by which a release remembers its persons."""
    from dbanon.db.histories import memory

    publication = persons.publication
    return memory.key_of(session, publication.info.name, publication.view)


def publish_dataset_request(dataset: str | Path | Dataset, request: Request) -> list[Release]:
    """Publish several tables of the same persons together, by one partition of the persons.

    ``dataset`` is a value or the path of a TOML file that names the table of the persons and the
    tables whose rows are theirs, each with a stored policy that says who its ``subject`` is. Rows
    of all tables are published with the quasi-identifiers of the class of their person, and k and
    the models hold of each table and of any join of them. Takes the options of ``publish``, but no
    ``name``, ``subject``, ``population`` or live view, and raises what it raises.
    """
    settings = request.settings or Settings.load()
    found = dataset_of(dataset)
    require(Mode.DATASET, request.given)
    wanted = [(name, request) for name in found.names]
    with publishing(wanted, settings, keep=not request.dry_run) as (session, loaded):
        stages = request.stages or Stages()
        return publish_in(session, loaded, request, stages, gate=request.gate)


publish = spelled_out(publish_request, "publish", make=Request)
publish_dataset = spelled_out(publish_dataset_request, "publish_dataset", make=Request)


@dataclass(slots=True)
class Ahead:
    """What was done of a publication while its rows were grouped, in its own transaction.

    hashed: the key by which all who were read are hashed, None where they are not;
    of_rows: the digest of the rows of the source, None where it was not made.
    """

    session: Session
    loaded: Loaded
    request: Request
    gate: Gate
    hashed: UUID | None = None
    of_rows: str | None = None

    @contextmanager
    def working(self, source: Source) -> Iterator[None]:
        """Work while the block runs, and be done at its end; the block leaves the session alone."""
        with self.session.meanwhile(lambda: self._work(source)):
            yield

    def _work(self, source: Source) -> None:
        policy, info = in_force(self.loaded, self.request), self.loaded.info
        if self.request.relation_kind is ReleaseKind.TABLE and policy.subject is None:
            from dbanon.db.person_hashes import hash_persons

            view = self.request.view(info.name)
            key = key_of_persons(self.session, info.name, view, self.gate)
            hash_persons(self.session, source.rows.keys, key)
            self.hashed = key
        self.of_rows = digest_of_rows(self.session, info, policy)


def dataset_of(given: str | Path | Dataset) -> Dataset:
    """Return a dataset from a value or from the file that describes it; raises ConfigError."""
    if isinstance(given, Dataset):
        return given
    try:
        return parse(Path(given).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        hint = converted(given, error) or "--dataset FILE, of TOML"
        raise ConfigError(unread(given, error), hint=hint) from None


def _require_apart(loaded: Sequence[Loaded], request: Request) -> None:
    """Raise ConfigError if two tables would be served under one name, or are one table."""
    seen: dict[TableName, TableName] = {}
    for one in loaded:
        table, view = one.info.name, request.view(one.info.name)
        if view in seen:
            if seen[view] == table:
                raise ConfigError(f"the dataset names {table} twice", hint="each table once")
            raise ConfigError(
                f"{seen[view]} and {table} would both be published as {view}",
                hint="name a view of one of them in the dataset",
            )
        seen[view] = table


@contextmanager
def publishing(
    wanted: Sequence[Wanted], settings: Settings, *, keep: bool
) -> Iterator[tuple[Session, list[Loaded]]]:
    """Open the one transaction of a publication, alone on its tables, each loaded in this order."""
    from dbanon.actions.preparation.loading import find_source
    from dbanon.db import identity
    from dbanon.db.metadata.migrate import require_current
    from dbanon.db.releases import turns, withdrawal
    from dbanon.db.releases.live import guards, marks
    from dbanon.db.session import connect

    requests = [request for _, request in wanted]
    with connect(settings, writes=True) as session:
        require_current(session)
        found = [find_source(session, _name(table)) for table, _ in wanted]
        asked = [*zip(found, requests, strict=True)]
        live = [info for info, request in asked if request.relation_kind is ReleaseKind.VIEW]
        for info in live:
            require(Mode.VIEW, info)
            guards.require_owner(session, info)
        views = [request.view(info.name) for info, request in asked]
        deed = Deed(", ".join(map(str, views)), "published")
        if keep:
            _make_schemas(session, found, views)
        with turns.alone(session, found, exclude_writers=bool(live), keep=keep, deed=deed):
            session.allow_memory()
            loaded = [_loaded(session, info, request) for info, request in asked]
            # All of them are open already, and none may be read before all are admitted.
            identity.admit(session, *(one.info for one in loaded))
            for one, request in zip(loaded, requests, strict=True):
                if not one.info.is_table:  # as admitting it did with a table
                    identity.pin(session, one.info)
                if request.relation_kind is ReleaseKind.VIEW:
                    marks.require_lasting(session, one.info)
            yield session, loaded
        if keep:
            for info in found:
                withdrawal.tidy(session, info.name)


def _make_schemas(session: Session, found: Sequence[TableInfo], views: Sequence[TableName]) -> None:
    """Make the schemas that views will be in, and commit: so publications into one do not wait.

    Raises NotPermitted when a source may not be read, of which nothing can be published.
    """
    from dbanon.db import catalog, schemas

    with session.transaction():
        names = sorted({view.schema or "public" for view in views})
        missing = [name for name in names if any(schemas.statements(session, name))]
        for info in found if missing else ():
            catalog.require_readable(session, info)
        for name in missing:
            schemas.ensure(session, name)


def _name(table: str | TableName) -> TableName:
    return table if isinstance(table, TableName) else TableName.parse(table)


def _loaded(session: Session, found: TableInfo, request: Request) -> Loaded:
    """Load a table that was found before the transaction began."""
    from dbanon.actions.preparation.loading import load, require_own_relation, require_unchanged
    from dbanon.db import catalog, identity

    info = catalog.describe(session, found.name)
    identity.require_same(found, info)
    loaded = load(session, info, request.policy)
    require_own_relation(loaded, request.view(info.name))
    require_unchanged(session, loaded, request.view(info.name))
    return loaded
