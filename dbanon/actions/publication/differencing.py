"""Refuse releases whose difference from an earlier one gives masked values of few persons.

Means, tails and swaps are computed again for every release. Two releases of nearly the same persons
would give the exact value of the one who came, left or changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.checks import CheckFailed, CheckReport
from dbanon.domain.composition import OTHER_READERS
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from dbanon.db.histories.apart import Apart
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Entry


_OTHERWISE = "mask it by rounding, noise or pram, or give it the role sensitive"
_BY_ROW = frozenset({Role.INSENSITIVE, Role.SENSITIVE})  # as what is published row by row


class _Reason(NamedTuple):
    """How a column that is compared was masked; always: why it may not be shown whoever came."""

    method: str | None
    always: str | None = None


class _Earlier(NamedTuple):
    """An earlier release; columns: those compared, and why; k: the greater one of both."""

    columns: Mapping[str, _Reason]
    k: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What of a release has to be compared with earlier ones of the table, by their numbers.

    same: the numbers of those served whose values in these columns it shows as often.
    """

    earlier: Mapping[int, _Earlier]
    same: AbstractSet[int]


def difference(session: Session, publication: Publication, *, shared: bool) -> Difference:
    """Compare masked values with those that are served.

    The membership is written, and the copy is not yet made. shared: whether the release is made of
    classes of earlier ones, so that published sensitive values stay.
    """
    from dbanon.anonymization.registry import within_classes
    from dbanon.db.histories import apart
    from dbanon.db.metadata import ledger

    if publication.kind is ReleaseKind.VIEW:
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
    return Difference(earlier, apart.same_values(session, publication, names))


def _compared(policy: Policy, other: Policy, *, shared: bool) -> Iterator[tuple[str, _Reason]]:
    """Yield the columns of which two releases by these policies may give values, and why."""
    from dbanon.anonymization.registry import masked_by, masking_of, solvable_columns

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
    """Raise CheckFailed if fewer than k persons make the difference from an earlier release.

    A release of the same persons with the same values as one that is served adds nothing. Otherwise
    it is not known how many values of persons who stayed have changed, as earlier ones are not
    remembered, so that those who came or left have to be k. Nor do these hide anybody else where a
    column is masked in another way, or by values that readers see as they were.
    """
    from dbanon.db.histories import apart

    if not found.earlier:
        return
    earlier = apart.persons_apart(session, publication, found.earlier.keys())
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
    publication: Publication,
    one: Apart,
    column: str,
    found: Difference,
    *,
    previous: Entry | None,
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
    state = "nothing was published"
    if previous is not None and previous.served:
        state = f"release {previous.id} is served on"
    named = quote_identifier(column) + (f", masked by {method}" if method else "")
    return CheckFailed(
        f"comparing releases could give exact values of column {named}: {reason}; {state}",
        CheckReport(publication.view, ()),
        hint=hint,
    )
