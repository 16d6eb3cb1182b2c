"""Publish an anonymized relation of a table, proved by the database before it is served."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.actions.preparation.inputs import digest_of_rows, fingerprint, of_classes
from dbanon.actions.preparation.loading import (
    Loaded,
    find_source,
    load_for,
    require_approved,
    require_shown,
)
from dbanon.db import catalog, identity, schemas
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import require_current
from dbanon.db.releases import guards, immutability, publication_lock, withdrawal
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError
from dbanon.domain.outcomes import Operation, Stages
from dbanon.domain.table import TableInfo, TableName
from dbanon.domain.text import converted, unread
from dbanon.formats.datasets import Dataset, parse
from dbanon.formats.support import Mode, reasons, require
from dbanon.request import Request, spelled_out
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.actions.publication.plan import PublicationPlan
    from dbanon.actions.publication.steps import Reading, Work
    from dbanon.domain.release import Release, SourceState, Sums


def publish_request(table: str | TableName, request: Request) -> Release:
    """Publish a table by its stored policy and return the release; one transaction.

    Options override the policy, see ``dbanon.request.Request``. An existing release is replaced
    atomically, and stays if anything fails.

    Raises Unsatisfiable, PolicyError, TaxonomyError, DriftError, CheckFailed, NotPermitted,
    ConfigError, DatabaseError.
    """
    return _published([table], request)[0]


def _published(tables: Sequence[str | TableName], request: Request) -> list[Release]:
    with publishing(tables, request) as (session, loaded):
        from dbanon.actions.publication.plan import resolve

        plan = resolve(session, loaded, request)
        works = carry_out(session, plan, request.stages or Stages())
    return [one.release for one in works if one.release is not None]


def carry_out(session: Session, plan: PublicationPlan, stages: Stages) -> list[Work]:
    """Group the rows of a plan, and serve its releases, in the transaction of ``publishing``.

    Enters the releases and the states of their sources in the ledger, or what was compared if a
    refresh has nothing to publish. Returns the tables with their releases. Raises PolicyError if an
    approval is demanded and missing; a dry run warns.
    """
    from dbanon.actions.publication.incremental import build_next
    from dbanon.actions.publication.steps import serve

    if not plan.request.dry_run:
        require_approved(one.unapproved for one in plan.members)
    is_incremental = plan.mode is Mode.REFRESH
    works = (build_next if is_incremental else _in_groups)(session, plan, stages)
    works = [replace(one, state=_state(session, one)) for one in works]
    is_new, request = all(one.is_new for one in works), plan.request
    if not is_new:  # the ledger keeps the options of the served release
        request = Request.from_ledger(plan.present[0].overrides)
    rows = [None if one.state is None else one.state.content for one in works]
    digest = fingerprint(session, plan.members, request, of_rows=rows)
    if is_incremental:
        digest = of_classes(session, digest, plan.present)
    works = [replace(one, fingerprint=digest) for one in works]
    return (serve if is_new else _compared)(session, plan, works, stages)


def _in_groups(session: Session, plan: PublicationPlan, stages: Stages) -> list[Work]:
    """Group all rows, and build a release of each table."""
    from dbanon.actions.publication.steps import build, group

    grouped = group(session, plan, stages)
    # The key of the persons, who come first, is that of all tables.
    key = plan.places[0].key_of_persons(session) if len(grouped) > 1 else None
    readings = [_reading(session, plan, one, part) for part, one in enumerate(grouped)]
    make = partial(build, session, plan, stages=stages, key=key)
    return [
        make(one, part=part, reading=reading)
        for part, (one, reading) in enumerate(zip(grouped, readings, strict=True))
    ]


def _reading(session: Session, plan: PublicationPlan, prepared: Prepared, part: int) -> Reading:
    """Return how a table was read whose rows are all grouped, with its table of places."""
    from dbanon.actions.publication.steps import Reading
    from dbanon.db import person_hashes

    member, previous, frozen = prepared.member, plan.previous[part], prepared.source.frozen
    counted = person_hashes.count(session, member.loaded.info, member.own, since=None)
    found = Reading(counted, ncp=prepared.outcome.loss.ncp)
    asked = plan.request.for_table(member.policy, member.info)
    is_frozen = frozen is not None and len(frozen)
    unplaced = counted is None or prepared.source.places is None or is_frozen
    if unplaced or any(reasons(Mode.PLACES, asked)):
        return found
    before = None if previous is None else previous.source_state
    former = None if before is None else before.places
    return found._replace(places=person_hashes.places_of_next(session, former))


def _state(session: Session, work: Work) -> SourceState | None:
    """Store the places of the rows of a source, and return its state."""
    from dbanon.db import person_hashes

    info, policy, reading = work.member.loaded.info, work.member.own, work.reading
    if reading.counted is None:
        return None
    release = work.publication.id if work.is_new else 0
    update = partial(person_hashes.update_places, session, info, policy, release=release)
    if reading.changes is not None:
        return update(reading.changes.now, key=None)
    content, state = digest_of_rows(session, info, policy), reading.counted.state
    state = replace(state, content=content, places=None, key=None, ncp=reading.ncp, spread=None)
    if reading.places is not None:
        state = state.placed(reading.places, work.publication.key)
        places, ends = work.prepared.source.places, work.prepared.ends
        spread = None if ends is None else person_hashes.spread_of(info, policy, places, ends)
        return replace(state, spread=spread, pages=person_hashes.pages_of(places))
    return state if reading.key is None else update(state, key=reading.key, former=reading.former)


def _compared(
    session: Session, plan: PublicationPlan, works: Sequence[Work], _stages: Stages
) -> list[Work]:
    """Keep the releases of a refresh that has nothing to publish, and enter what was compared."""
    kept = []
    for one, release in zip(works, plan.present, strict=True):
        loaded, delta, state = one.member.loaded, one.delta, one.state
        if state is not None:  # the digest of the copy was compared
            state = replace(state, copy=_sums(session, release))
        if loaded.now is not None:
            store.save_baseline(session, loaded.info.name, loaded.now, name=loaded.wanted)
        ledger.note_compared(session, release.id, one.fingerprint, growth=delta, state=state)
        noted = replace(release, growth=delta, source_state=state)
        kept.append(replace(one, release=replace(noted, warnings=one.prepared.warnings)))
    keep(session, [one.loaded for one in plan.members], plan.present)
    return kept


def _sums(session: Session, release: Release) -> Sums:
    """Return the sums of an unaltered copy; an earlier version stored none."""
    published = catalog.describe_published(session, release.relation)
    known = immutability.known_sums(published, release)
    if known is None:
        return immutability.sums(session, published, release.data_id)
    return immutability.written(session, release.data_id, known)


def keep(session: Session, loaded: Sequence[Loaded], served: Sequence[Release]) -> None:
    """End a transaction that keeps releases; raise NotPermitted if a role can read two series."""
    from dbanon.db.histories import readers

    for one, release in zip(loaded, served, strict=True):
        others = readers.of_others(session, one.info, release=release.id)
        readers.require_others(session, others, table=one.info, relation=release.relation)
    withdraw(session)


def withdraw(session: Session) -> None:
    """End a transaction that publishes nothing; what it noted is kept."""
    identity.require_admitted(session)
    session.operations.withdraw()


def publish_dataset_request(dataset: str | Path | Dataset, request: Request) -> list[Release]:
    """Publish several tables of the same persons together, by one partition of the persons.

    ``dataset`` is a value or the path of a TOML file that names the table of the persons and the
    tables with their rows, each with a stored policy with a ``subject``. Rows of all tables are
    published with the quasi-identifiers of the class of their person. k and the models hold in each
    table and in any join of them. Takes the options of ``publish`` except ``name``, ``subject``,
    ``population`` and live views, and raises the same errors.
    """
    found = dataset_of(dataset)
    require(Mode.DATASET, request.given)
    return _published(found.names, request)


publish = spelled_out(publish_request, "publish", make=Request)
publish_dataset = spelled_out(publish_dataset_request, "publish_dataset", make=Request)


def dataset_of(given: str | Path | Dataset) -> Dataset:
    """Return a dataset from a value or from its file; raises ConfigError."""
    if isinstance(given, Dataset):
        return given
    try:
        return parse(Path(given).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        hint = converted(given, error) or "--dataset FILE, of TOML"
        raise ConfigError(unread(given, error), hint=hint) from None


@contextmanager
def publishing(
    tables: Sequence[str | TableName], request: Request
) -> Iterator[tuple[Session, list[Loaded]]]:
    """Open the transaction of a publication, with its tables locked and loaded, in this order."""
    live, keep = request.relation_kind.is_live, not request.dry_run
    with connect(request.settings or Settings.load(), writes=True) as session:
        require_current(session)
        found = [find_source(session, TableName.parse(table)) for table in tables]
        for info in found if live else ():
            require(Mode.VIEW, info)
            guards.require_owner(session, info)
        views = [request.view(info.name) for info in found]
        operation = Operation(", ".join(map(str, views)), "published")
        if keep:
            _make_schemas(session, found, views)
        turn = publication_lock.alone(
            session, found, exclude_writers=live, keep=keep, operation=operation
        )
        with session.keeping_lasting(keep=keep), turn:
            session.allow_memory()
            infos = [catalog.describe(session, info.name) for info in found]
            for before, now in zip(found, infos, strict=True):
                identity.require_same(before, now)
            loaded = [load_for(session, info, request) for info in infos]
            if request.shown:
                require_shown(session, loaded, request.shown)
            # All of them are open already, and none may be read before all are admitted.
            identity.admit(session, *(one.info for one in loaded))
            for one in loaded:
                if not one.info.is_table:  # as admitting it did with a table
                    identity.pin(session, one.info)
                if live:
                    guards.require_lasting(session, one.info)
            yield session, loaded
        if keep:
            withdrawal.tidy(session)


def _make_schemas(session: Session, found: Sequence[TableInfo], views: Sequence[TableName]) -> None:
    """Create the schemas of the views and commit, so that concurrent publications do not wait.

    Raises NotPermitted if a source is not readable.
    """
    with session.transaction():
        names = sorted({view.schema or "public" for view in views})
        missing = [name for name in names if any(schemas.statements(session, name))]
        for info in found if missing else ():
            catalog.require_readable(session, info)
        for name in missing:
            schemas.ensure(session, name)
