"""Who goes with those who left a class, that they are k with enough values, and so are the others.

That splits an atom into two which are valid each (algorithm reference, section 7.2), so whoever
compares releases is left with a valid class of those who went, and with one of those who stay.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from dbanon.db.queries import query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from dbanon.db.session import Session

_DRAWS = 40  # of so many companions, before more are tried


class Candidate(NamedTuple):
    """A person of a part of a class, with the values of the sensitive columns."""

    is_gone: bool
    person: UUID
    values: Sequence[str | None]


def find(
    session: Session, parts: Sequence[int], k: int, required: Mapping[str, int]
) -> dict[int, list[UUID]]:
    """Return who goes with those who left each part; parts that cannot be split are left out.

    k, required: what both have to be: so many, with so many values of each sensitive column.
    """
    if not parts:
        return {}
    asked = {"parts": list(parts), "columns": list(required)}
    members: dict[int, list[Candidate]] = {part: [] for part in parts}
    for part, *candidate in session.pg.execute(query("standing/candidates"), asked):
        members[part].append(Candidate(*candidate))
    drawn = {part: draw(found, k, required) for part, found in members.items()}
    return {part: [one.person for one in found] for part, found in drawn.items() if found}


def draw(members: Sequence[Candidate], k: int, required: Mapping[str, int]) -> list[Candidate]:
    """Return about as few as can be who make those who are gone a valid class, and leave one.

    They are drawn until they fit, each set of so many being as likely as any other: a choice by
    value would lead back from who went to who had left. What draws is known to the hashes alone, so
    that a plan and the refresh that follows it draw the same. Empty where nobody is found.
    """
    gone = [one for one in members if one.is_gone]
    others = [one for one in members if not one.is_gone]
    chance = random.Random(sum(one.person.int for one in members))  # noqa: S311 - see above
    for size in range(max(k - len(gone), 1), len(others) - k + 1):
        for _ in range(_DRAWS):
            drawn = chance.sample(others, size)
            rest = [one for one in others if one not in drawn]
            if _is_safe(rest, k, required) and _is_safe([*gone, *drawn], k, required):
                return drawn
    return []


def _is_safe(members: Sequence[Candidate], k: int, required: Mapping[str, int]) -> bool:
    """Whether so many are a valid class; a value that is not published is none."""
    return len(members) >= k and all(
        len({one.values[i] for one in members} - {None}) >= least
        for i, least in enumerate(required.values())
    )
