"""What a release adds to what all releases of its series reveal, and whether it may."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.actions.publication.differencing import require_enough_changed
from dbanon.domain.checks import CheckFailed, CheckReport
from dbanon.domain.composition import OTHER_READERS, RevealsMore, require_safe
from dbanon.domain.errors import ConfigError
from dbanon.domain.release import ReleaseKind
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from dbanon.actions.publication.differencing import Difference
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.composition import Composition, Gate
    from dbanon.domain.release import Entry
    from dbanon.domain.table import TableInfo, TableName
    from dbanon.request import Request


def compare(
    session: Session,
    publication: Publication,
    gate: Gate,
    *,
    previous: Entry | None,
    difference: Difference,
) -> Composition:
    """Remember whom a copy shows, and say what all releases of its series together reveal.

    Nobody can remember whom a live view shows: that changes by itself. Raises CheckFailed when the
    release makes it worse and starts no series of its own.

    difference: of its masked values from those of earlier releases.
    """
    from dbanon.db.histories import leavers, overlay

    table = publication.info.name
    if publication.withdrawn is None:  # what is grouped anew shows nobody who is gone
        leavers.forget(session, publication.view)
    if publication.kind is ReleaseKind.VIEW:
        live = {publication.id: publication.policy}
        found = overlay.recall(session, table, relation=publication.view, live=live)
    else:
        starts, joined = _starts(session, table, gate), gate.series
        found = overlay.remember(session, publication, starts_series=starts, series_of=joined)
        if (found.failed or found.small) and not starts:
            _require_no_worse(session, publication, found, previous)
        if not starts:
            require_enough_changed(session, publication, difference, previous=previous)
    require_safe([found] if gate.strict else [])
    return found


def key_of_persons(
    session: Session, table: TableName, view: TableName, gate: Gate, *, own: UUID | None = None
) -> UUID:
    """Return the key by which ``compare`` will remember the persons of a copy.

    own: by which it is to remember them, if they are not by another one already.
    """
    from dbanon.db.histories import memory

    joined = None if _starts(session, table, gate) else gate.series or view
    return memory.joined_key(session, table, joined, own=own)


def compare_together(
    session: Session, publications: Sequence[Publication], gate: Gate
) -> Composition:
    """Say what all releases of all tables of a dataset reveal of persons, once they are remembered.

    Raises CheckFailed when it is worse than before, or cannot be known.
    """
    from dbanon.db.histories import joint

    relations = {one.info.name: one.view for one in publications}
    persons = publications[0]
    found = joint.recall(session, relations, new=publications)
    if found.unknown:
        raise CheckFailed(
            f"what the releases of {', '.join(map(str, relations))} together reveal is not known,"
            " as these tables do not remember their persons alike; nothing was published",
            CheckReport(persons.view, ()),
            hint=OTHER_READERS,
        )
    if found.failed or found.small:
        before = joint.recall(session, relations, new=publications, before=True)
        if found.is_worse_than(before):
            raise _worse(found.reasons_against(before), found, persons, "nothing was published")
    require_safe([found] if gate.strict else [])
    return found


def placed(session: Session, info: TableInfo, request: Request, *, gate: Gate) -> Gate:
    """Return a gate by which a copy joins the right series; writes nothing.

    Whoever reads a relation of a new name may have read the releases of any series before, or of
    none. Raises ConfigError when the table has several and nobody said of which one it is, or when
    it was published by another name.
    """
    from dbanon.db.histories import memory

    table = info.name
    _require_own_name(session, info, gate)
    if request.relation_kind is ReleaseKind.VIEW:
        return gate
    view, known = request.view(table), memory.places(session, table)
    if not _starts(session, table, gate):
        _require_remembered(session, table, gate.series or view)
    latest = {relation: series for series, relation in known.values()}
    if gate.series is not None and gate.series not in latest:
        raise ConfigError(
            f"{gate.series} is not remembered as a relation of {table}",
            hint=command("dbanon history", table),
        )
    if view not in latest:
        if gate.series is None and not _starts(session, table, gate):
            _require_one(table, view, known, of_table=not request.dataset)
        return gate
    if gate.series is None:
        return gate
    if latest[gate.series] != latest[view]:
        raise ConfigError(
            f"{view} was published in another series than {gate.series}",
            hint="publish it under another --name",
        )
    return replace(gate, series=view)


def _require_own_name(session: Session, info: TableInfo, gate: Gate) -> None:
    """Raise ConfigError when a table was renamed: its releases are found by the name it had."""
    from dbanon.db.releases import turns

    former = turns.former_names(session, info)
    served = [number for numbers in former.values() for number in numbers]
    if not former or (gate.new_series and not served):
        return
    names = " or ".join(map(str, former))
    drops = "".join(f"{command('dbanon release drop', number)}, " for number in served)
    raise ConfigError(
        f"{info.name} was published before as {names}, which is gone: whoever has those releases"
        " could compare them with this one",
        hint=f"rename it back; or group it anew: {drops}then --new-series",
    )


def _require_remembered(session: Session, table: TableName, relation: TableName) -> None:
    """Raise ConfigError when nobody knows any more what a relation's readers were shown before."""
    from dbanon.db.histories import memory

    if memory.is_forgotten(session, table, relation):
        raise ConfigError(
            f"whom the releases of {table} showed is forgotten, so nothing can be compared with"
            " them",
            hint=OTHER_READERS,
        )


def _require_one(
    table: TableName,
    view: TableName,
    known: Mapping[int, tuple[int, TableName]],
    *,
    of_table: bool,
) -> None:
    """Raise ConfigError when a table has several series; known: of each release, and relation."""
    series: dict[int, dict[TableName, list[int]]] = {}
    for number, (own, relation) in known.items():
        series.setdefault(own, {}).setdefault(relation, []).append(number)
    if len(series) < 2:  # noqa: PLR2004
        return
    listed = "; ".join(
        ", ".join(f"{name} (release {', '.join(map(str, those))})" for name, those in own.items())
        for own in series.values()
    )
    latest = {relation: own for own, relation in known.values()}
    to_join = {own: relation for relation, own in latest.items()}
    joins = " or ".join(command("--series", relation) for relation in to_join.values())
    raise ConfigError(
        f"the releases of {table} are {len(series)} series, and whose readers {view} is for is not"
        f" known: {listed}",
        hint=f"{joins}; or {OTHER_READERS}" if of_table else OTHER_READERS,
    )


def _starts(session: Session, table: TableName, gate: Gate) -> bool:
    """Whether a copy is compared with nothing from now on."""
    from dbanon.db.metadata import ledger

    if gate.series is not None:
        return False
    if gate.new_series and not gate.recipients_changed:
        return not ledger.served_entries(session, table=table)
    return gate.new_series


def _require_no_worse(
    session: Session, publication: Publication, found: Composition, previous: Entry | None
) -> None:
    """Raise CheckFailed when more cells fail than did before; what was revealed stays revealed."""
    from dbanon.db.histories import overlay

    before = overlay.recall_before(session, publication)
    if not found.is_worse_than(before):
        return
    served = "nothing was published"
    if previous is not None and previous.served:
        served = f"release {previous.id} is served on"
    raise _worse(found.reasons_against(before), found, publication, served)


def _worse(
    reasons: Sequence[str], found: Composition, publication: Publication, state: str
) -> RevealsMore:
    """Return the error of a release that would reveal more; state: what is served instead."""
    return RevealsMore(
        "\n  ".join([*reasons, state]),
        CheckReport(publication.view, tuple(one.result for one in found.failed)),
        hint=f"{command('dbanon history', publication.info.name)}; {OTHER_READERS}",
    )
