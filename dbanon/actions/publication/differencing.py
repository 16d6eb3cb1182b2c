"""Refuse releases whose difference from an earlier one gives masked values of few persons.

Means, tails and swaps are computed again for every release. Two releases of nearly the same persons
would give the exact value of the one who came, left or changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.checks import CheckFailed, CheckReport
from dbanon.domain.policy import Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from dbanon.db.histories.apart import Apart
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Entry


class _Earlier(NamedTuple):
    """An earlier release; columns: those compared, with the method; k: the greater one of both."""

    columns: Mapping[str, str]
    k: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What of a release has to be compared with earlier ones of the table, by their numbers.

    same: the numbers of those served whose values in these columns it shows as often; apart: the
    columns whose values of persons who were never published are masked apart from the others.
    """

    earlier: Mapping[int, _Earlier]
    same: AbstractSet[int]
    apart: AbstractSet[str]


def difference(session: Session, publication: Publication, *, shared: bool) -> Difference:
    """Compare masked values with those that are served.

    The membership is written, and the copy is not yet made. shared: whether the release is made of
    classes of earlier ones, so that published sensitive values stay.
    """
    from dbanon.anonymization.registry import masked_together, values_stay, within_classes
    from dbanon.db.histories import apart
    from dbanon.db.metadata import ledger

    if publication.kind is ReleaseKind.VIEW:
        return Difference({}, set(), set())
    policy, table = publication.policy, publication.info.name
    policies = ledger.policies_by_release(session, table, known=[policy])
    earlier = {
        number: _Earlier(columns, max(policy.k, other.k))
        for number, other in policies.items()
        if (columns := _compared(policy, other, shared=shared))
    }
    # Permuted values are told by the class, too.
    labels = policy.published_quasi if within_classes(policy) else ()
    names = {number: (*one.columns, *labels) for number, one in earlier.items()}
    with_sensitive = {
        name
        for step in policy.masking
        for together in masked_together(step)
        if shared and values_stay(policy, together)
        for name in together
    }
    return Difference(earlier, apart.same_values(session, publication, names), with_sensitive)


def _compared(policy: Policy, other: Policy, *, shared: bool) -> dict[str, str]:
    """Return the columns of which two releases by these policies may give values."""
    from dbanon.anonymization.registry import solvable_columns

    new, old = solvable_columns(policy), solvable_columns(other)
    shown, sensitive = (
        set.intersection(
            *({r.column for r in one.columns if r.role in roles} for one in (policy, other))
        )
        for roles in ({Role.INSENSITIVE, Role.SENSITIVE}, {Role.SENSITIVE})
    )
    as_it_is = {column for column in old if not policy.masked(column)}
    found = (new.keys() | as_it_is) & shown - (sensitive if shared else set())
    return {column: new.get(column) or old[column] for column in sorted(found)}


def require_enough_changed(
    session: Session, publication: Publication, found: Difference, *, previous: Entry | None
) -> None:
    """Raise CheckFailed if fewer than k persons make the difference from an earlier release.

    A release of the same persons with the same values as one that is served adds nothing. Otherwise
    it is not known how many values of persons who stayed have changed, as earlier ones are not
    remembered, so that those who came or left have to be k.
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
        for column in columns.keys() - unchanged:
            came = one.returned if column in found.apart else one.came
            if not one.is_known or came + one.left < k:
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
    whose = "left" if column in found.apart else "came or left"
    reason = f"{one.came} persons came and {one.left} left since release {one.number}"
    if not one.is_known:
        reason = f"the persons of release {one.number} are not remembered"
    elif (one.came, one.left) == (0, 0):
        reason = f"masked values have changed since release {one.number}, and nobody came or left"
    state = "nothing was published"
    if previous is not None and previous.served:
        state = f"release {previous.id} is served on"
    return CheckFailed(
        f"comparing releases could give exact values of column {quote_identifier(column)}, masked"
        f" by {columns[column]}: {reason} (k = {k}); {state}",
        CheckReport(publication.view, ()),
        hint=f"wait until {k} persons {whose}; or mask by rounding, noise or pram; or for readers"
        " who never had one of these: --new-series --recipients-changed, with the role sensitive,"
        " so that published values stay",
    )
