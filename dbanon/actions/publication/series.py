"""Combined disclosure of the releases of a series, with a new one.

The releases of a table are a series: a release is refused if comparison with the earlier ones would
disclose more than they do, unless its readers have not seen these and it starts a series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dbanon.anonymization.registry import masked_by, masking_of, solvable_columns, within_classes
from dbanon.db.histories import membership, memory, overlay, readers
from dbanon.db.metadata import ledger
from dbanon.db.releases import publication_lock
from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import INDEPENDENT, VOUCHED, Policy, Role
from dbanon.domain.release import (
    OTHER_READERS,
    CheckFailed,
    CheckReport,
    Composition,
    Entry,
    RevealsMore,
    require_safe,
)
from dbanon.domain.table import TableInfo, TableName, quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from dbanon.actions.preparation.inputs import InputTable
    from dbanon.db.histories.membership import Apart
    from dbanon.db.histories.memory import Known
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.request import Request


UNREAD = "no role but its owner was ever granted what was served"
"""Why a release is grouped from scratch although earlier ones exist."""


def compare(
    session: Session,
    publication: Publication,
    place: Placement,
    request: Request,
    *,
    previous: Entry | None,
    difference: Difference | None,
) -> Composition:
    """Remember the persons of a copy, and return the combined disclosure of its series.

    The persons of a live view change, and are not remembered. Raises CheckFailed if the disclosure
    grows and the release starts no new series. place: in the series of the table; difference: of
    masked values from earlier releases.
    """
    table = publication.info.name
    if publication.withdrawn is None:  # a grouping from scratch shows nobody who is gone
        memory.forget_deleted(session, publication.view)
    if publication.kind.is_live:
        found = overlay.recall(session, {table: publication.view}, new=[publication])
    else:
        starts = place.joined is None
        found = overlay.remember(
            session,
            publication,
            starts_series=starts,
            series_of=place.joined,
            is_compared=place.is_compared,
        )
        if not starts:
            _require_no_worse(session, [publication], found, previous=previous)
        if starts:
            memory.forget_pools(session, publication.view)
        else:
            assert difference is not None  # noqa: S101 - it was found before the copy
            require_enough_changed(session, publication, difference, previous=previous)
    require_safe([found] if request.strict else [])
    if not publication.kind.is_live:
        _require_judged(session, publication, dataset=request.dataset)
    return found


def compare_linked(
    session: Session, publications: Sequence[Publication], *, strict: bool
) -> Composition:
    """Return the combined disclosure of all releases of a dataset, after they are remembered.

    Raises CheckFailed if it grows or cannot be computed.
    """
    relations = {one.info.name: one.view for one in publications}
    persons = publications[0]
    found = overlay.recall(session, relations, new=publications)
    if found.unknown:
        raise CheckFailed(
            f"what the releases of {', '.join(map(str, relations))} together reveal is not known,"
            " as these tables do not remember their persons alike; nothing was published",
            CheckReport(persons.view, ()),
            hint=OTHER_READERS,
        )
    _require_no_worse(session, publications, found)
    require_safe([found] if strict else [])
    return found


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of a release among the series of its table.

    joined: the relation whose series it joins, None if it starts one; key: by which the persons of
    that series are remembered, None if they are not; is_compared: if it starts one, with another
    one for the steward's information; former_key: by which the persons of that are remembered.
    """

    joined: TableName | None
    key: UUID | None
    former_key: UUID | None = None
    is_compared: bool = True

    def key_of_persons(self, session: Session, *, own: UUID | None = None) -> UUID:
        """Return the key by which persons are remembered: the stored one, ``own`` or a new one."""
        return self.key or own or memory.new_key(session)


def relation_of(table: TableName, request: Request) -> TableName:
    """Return the relation whose series a release joins unless it starts one."""
    return request.joined or request.view(table)


def placed(session: Session, info: TableInfo, request: Request) -> Placement:
    """Return the place of a release among the series of its table; writes nothing.

    The readers of a new name may have read any series. Raises ConfigError if the table has several
    series and none is named, or if it was published under another name.
    """
    table = info.name
    _require_coherent(request)
    _require_own_name(session, info, request)
    joined, starts = relation_of(table, request), _starts(session, table, request)
    found = memory.placement(session, table, joined)
    if not request.relation_kind.is_live:
        if found.is_forgotten and not starts:
            raise ConfigError(
                f"the membership of the releases of {table} was deleted, so nothing can be compared"
                " with them",
                hint=OTHER_READERS,
            )
        joined = _joined(table, request, found.releases, starts=starts)
    return Placement(None, None, found.key) if starts else Placement(joined, found.key)


def _joined(
    table: TableName, request: Request, known: Mapping[int, tuple[int, TableName]], *, starts: bool
) -> TableName:
    """Return the relation whose series fits; known: series and relation of each release."""
    view, joined = request.view(table), request.joined
    latest = {relation: series for series, relation in known.values()}
    if joined is not None and joined not in latest:
        raise ConfigError(
            f"{joined} is not remembered as a relation of {table}",
            hint=command("dbanon history", table),
        )
    if view not in latest:
        if joined is None and not starts:
            _require_one(table, view, known, of_table=not request.dataset)
        return joined or view
    if joined is not None and latest[joined] != latest[view]:
        raise ConfigError(
            f"{view} was published in another series than {joined}",
            hint="publish it under another --name",
        )
    return view


def restarted(session: Session, members: Sequence[InputTable], request: Request) -> str | None:
    """Return why a copy starts a series that was not requested, None if it does not."""
    named = request.new_series or request.recipients_changed or request.series
    if request.relation_kind.is_live or named:
        return None
    if all(member.policy.refresh == INDEPENDENT for member in members):
        return VOUCHED
    first, *others = members
    info, view = first.info, request.view(first.info.name)
    if not others and readers.is_unread(session.pg, info, view):
        return UNREAD
    return None


def require_unread(session: Session, publication: Publication) -> None:
    """Raise CheckFailed if a role was granted what binds nothing, also since the snapshot."""
    with session.fresh() as now:
        is_unread = readers.is_unread(now, publication.info, publication.view)
    if not is_unread:
        raise CheckFailed(
            f"rights on {publication.view} were granted meanwhile; nothing was published",
            CheckReport(publication.view, ()),
            hint="run the command again",
        )


def _require_coherent(request: Request) -> None:
    """Raise ConfigError if options about the series contradict each other."""
    if not request.recipients_changed:
        return
    if request.joined is not None:
        raise ConfigError(
            f"--recipients-changed starts a series, so it cannot join that of {request.joined}",
            hint="--series RELATION, or --new-series --recipients-changed",
        )
    if not request.new_series:
        raise ConfigError(
            "--recipients-changed is for a new series", hint="--new-series --recipients-changed"
        )


def _require_own_name(session: Session, info: TableInfo, request: Request) -> None:
    """Raise ConfigError if a published table was renamed: releases are found by the former name."""
    former = publication_lock.former_names(session, info)
    served = [number for numbers in former.values() for number in numbers]
    if not former or (request.new_series and not served):
        return
    names = " or ".join(map(str, former))
    drops = "".join(f"{command('dbanon release drop', number)}, " for number in served)
    raise ConfigError(
        f"{info.name} was published before as {names}, which is gone: whoever has those releases"
        " could compare them with this one",
        hint=f"rename it back; or group it from scratch: {drops}then --new-series",
    )


def _require_one(
    table: TableName, view: TableName, known: Mapping[int, tuple[int, TableName]], *, of_table: bool
) -> None:
    """Raise ConfigError if a table has several series; known: series and relation by release."""
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


def _starts(session: Session, table: TableName, request: Request) -> bool:
    """Whether a copy starts a series, and is compared with no release."""
    if request.joined is not None:
        return False
    if request.new_series and not request.recipients_changed:
        return not ledger.served_entries(session, table=table)
    return request.new_series


def state_after(previous: Entry | None) -> str:
    """Return the sentence on the release that stays served after a refusal."""
    if previous is not None and previous.served:
        return f"release {previous.id} is served on"
    return "nothing was published"


def _require_no_worse(
    session: Session,
    publications: Sequence[Publication],
    found: Composition,
    *,
    previous: Entry | None = None,
) -> None:
    """Raise RevealsMore if more cells fail than before; previous: the release to replace."""
    if not (found.failed or found.small):
        return
    before, first = overlay.recall_before(session, publications), publications[0]
    if found.is_worse_than(before):
        raise RevealsMore(
            "\n  ".join([*found.reasons_against(before), state_after(previous)]),
            CheckReport(first.view, tuple(one.result for one in found.failed)),
            hint=f"{command('dbanon history', first.info.name)}; {OTHER_READERS}",
        )


def _require_judged(
    session: Session, publication: Publication, *, dataset: Collection[str] = ()
) -> None:
    """Raise CheckFailed if pseudonyms join releases that were never compared.

    The copy is remembered already; dataset: the tables that are compared together with its own.

    A reader of pseudonyms can join all relations with one key, and counts the rows of each person
    in them. The comparison covers that for persons with one row and for releases that keep their
    classes. For others it covers the classes of a person, not the number of rows.
    """
    others = memory.known_by_key(session, publication)
    shown = publication.policy.linking or any(one.pseudonym for one in others)
    found = next(_unjudged(publication, others, dataset), None) if shown else None
    if found is not None:
        raise CheckFailed(
            f"{publication.view}: {found}; nothing was published",
            CheckReport(publication.view, ()),
            hint=OTHER_READERS,
        )


def _unjudged(
    publication: Publication, others: Sequence[Known], dataset: Collection[str]
) -> Iterator[str]:
    info, policy = publication.info, publication.policy
    together = {str(info.name), *dataset}
    for one in others:
        table = str(one.table)
        if table not in together:
            yield (
                f"persons have the same pseudonyms as in releases of {table}, which is not"
                " published together with it"
            )
        if table == str(info.name) and tuple(one.person) != publication.person:
            yield (
                "persons were told apart by other columns before, so that their pseudonyms would be"
                " those of others, and could be compared with nothing"
            )
    several = bool(dataset) or not policy.is_one_row(info)
    earlier = [one for one in others if one.is_earlier or not dataset]
    is_anew = publication.withdrawn is None and bool(earlier)
    if is_anew and several and policy.rows_per_subject != 1:
        yield (
            "persons with several rows are grouped from scratch, and their pseudonyms would show"
            " readers how many rows each has in every release"
        )


_OTHERWISE = "mask it by rounding, noise or pram, or give it the role sensitive"
_BY_ROW = frozenset({Role.INSENSITIVE, Role.SENSITIVE})  # as what is published row by row


class _Reason(NamedTuple):
    """The masking of a compared column; always: why any number of changes is too few."""

    method: str | None
    always: str | None = None


class _Earlier(NamedTuple):
    """An earlier release; columns: the compared columns with reasons; k: the greater k of both."""

    columns: Mapping[str, _Reason]
    k: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The earlier releases to compare masked values with, by number.

    same: the served releases with the same multiset of values in these columns.
    """

    earlier: Mapping[int, _Earlier]
    same: AbstractSet[int]


def difference(session: Session, publication: Publication, *, shared: bool) -> Difference:
    """Compare masked values with the served releases, after the membership and before the copy.

    shared: whether earlier classes are reused, with their sensitive values.
    """
    if publication.kind.is_live:
        return Difference({}, set())
    policy, table = publication.policy, publication.info.name
    policies = ledger.policies_by_release(session, table, known=[policy])
    earlier = {
        number: _Earlier(columns, max(policy.k, other.k))
        for number, other in policies.items()
        if (columns := dict(_compared(policy, other, shared=shared)))
    }
    # Permuted values are told by the class, too.
    labels = policy.published_quasi if within_classes(policy) else ()
    names = {number: (*one.columns, *labels) for number, one in earlier.items()}
    return Difference(earlier, membership.same_values(session, publication, names))


def _compared(policy: Policy, other: Policy, *, shared: bool) -> Iterator[tuple[str, _Reason]]:
    """Yield the columns whose values two releases of these policies may disclose, with reasons."""
    new, old = solvable_columns(policy), solvable_columns(other)
    roles = {rule.column: rule.role for rule in other.columns}
    for rule in policy.columns:
        column, former = rule.column, roles.get(rule.column)
        stays = shared and rule.role is Role.INSENSITIVE
        method = new.get(column) or old.get(column)
        if rule.role not in _BY_ROW or former is None or not former.is_published:
            continue
        if stays and former.stays:
            yield column, _Reason(method, f"it was {former} in")
        elif former not in _BY_ROW or (shared and rule.role is former is Role.SENSITIVE):
            continue
        elif method and rule.role is not former:
            yield column, _Reason(method, f"it was {former} in")
        elif method and masking_of(policy, column) != masking_of(other, column):
            yield column, _Reason(method, "it was masked in another way in")
        elif stays and (names := masked_by(policy, column)):
            listed = ", ".join(map(quote_identifier, names))
            why = f"that goes by {listed}, whose published values stay as in"
            yield column, _Reason(policy.masked(column)[0].method, why)
        elif method:
            yield column, _Reason(method)


def require_enough_changed(
    session: Session, publication: Publication, found: Difference, *, previous: Entry | None
) -> None:
    """Raise CheckFailed if fewer than k persons differ from an earlier release.

    The same persons with the same values as in a served release add nothing. Otherwise the number
    of changed values is unknown, because earlier values are not remembered, so at least k persons
    must have come or left. A column that is masked differently, or by unmasked values, is always
    refused.
    """
    if not found.earlier:
        return
    earlier = membership.persons_apart(session, publication, found.earlier.keys())
    unchanged = {
        column
        for one in earlier
        if one.number in found.same and (one.came, one.left) == (0, 0)
        for column in found.earlier[one.number].columns
    }
    for one in earlier:
        columns, k = found.earlier[one.number]
        for column, why in columns.items():
            if column in unchanged:
                continue
            if why.always or not one.is_known or one.came + one.left < k:
                raise _too_few(publication, one, column, found, previous=previous)


def _too_few(
    publication: Publication, one: Apart, column: str, found: Difference, *, previous: Entry | None
) -> CheckFailed:
    """Return the error of a release that differs too little from an earlier one."""
    columns, k = found.earlier[one.number]
    method, always = columns[column]
    reason = f"{one.came} persons came and {one.left} left since release {one.number} (k = {k})"
    hint = f"wait until {k} persons came or left; or {OTHER_READERS}, and {_OTHERWISE}"
    if always:
        reason, hint = f"{always} release {one.number}", OTHER_READERS
    elif not one.is_known:
        reason = f"the persons of release {one.number} are not remembered (k = {k})"
    elif (one.came, one.left) == (0, 0):
        reason = f"masked values have changed since release {one.number}, and nobody came or left"
        reason += f" (k = {k})"
    named = quote_identifier(column) + (f", masked by {method}" if method else "")
    return CheckFailed(
        f"comparing releases could give exact values of column {named}: {reason};"
        f" {state_after(previous)}",
        CheckReport(publication.view, ()),
        hint=hint,
    )
