"""Who goes with those who left a class, that they are k with enough values, and so are the others.

That splits an atom into two which are valid each (algorithm reference, section 7.2), so whoever
compares releases is left with a valid class of those who went, and with one of those who stay.
"""

from __future__ import annotations

import hmac
import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from dbanon.db.metadata import store
from dbanon.db.queries import query

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
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
    key = store.secret_for(session, "companions")
    members: dict[int, list[Candidate]] = {part: [] for part in parts}
    for part, *candidate in session.pg.execute(query("standing.candidates"), asked):
        members[part].append(Candidate(*candidate))
    drawn = {part: draw(found, k, required, key=key) for part, found in members.items()}
    return {part: [one.person for one in found] for part, found in drawn.items() if found}


def draw(
    members: Sequence[Candidate], k: int, required: Mapping[str, int], *, key: bytes
) -> list[Candidate]:
    """Return about as few as can be who make those who are gone a valid class, and leave one.

    They are drawn until they fit, each set of so many being as likely as any other: a choice by
    value would lead back from who went to who had left. The secret key and the members decide, so
    that a plan and the refresh that follows it draw the same. Empty where nobody is found.
    """
    gone = [one for one in members if one.is_gone]
    others = [one for one in members if not one.is_gone]
    columns = [_Column.of(gone, others, i, least) for i, least in enumerate(required.values())]
    if not all(column.can_be_split for column in columns):
        return []
    persons = b"".join(sorted(one.person.bytes for one in members))
    chance = random.Random(hmac.digest(key, persons, "sha256"))  # noqa: S311 - the seed is secret
    for size in _sizes(max(k - len(gone), 1), len(others) - k):
        for _ in range(_DRAWS):
            drawn = chance.sample(others, size)
            if all(column.is_split_by(drawn) for column in columns):
                return drawn
    return []


def _sizes(least: int, most: int) -> Iterator[int]:
    """Yield how many to draw: large classes would take hours if every number were tried."""
    while least <= most:
        yield least
        least += max(1, least // 8)


class _Column(NamedTuple):
    """The values of a column, NULL left out, of those who are gone and of the others.

    least: how many different ones those who go have to have, and those who stay.
    """

    place: int
    gone: frozenset[str]
    others: Counter[str]
    least: int

    @classmethod
    def of(
        cls, gone: Sequence[Candidate], others: Sequence[Candidate], place: int, least: int
    ) -> _Column:
        """Return the column at a place among the values."""
        return cls(place, frozenset(_at(place, gone)), Counter(_at(place, others)), least)

    @property
    def can_be_split(self) -> bool:
        """Whether any drawing leaves enough values to both sides; a value of one is on one side."""
        shared = self.gone.union(value for value, count in self.others.items() if count > 1)
        return len(self.others) - self.least >= max(0, self.least - len(shared))

    def is_split_by(self, drawn: Sequence[Candidate]) -> bool:
        """Whether those who go, and those who stay, have enough values."""
        went = Counter(_at(self.place, drawn))
        lost = sum(count == self.others[value] for value, count in went.items())
        return len(self.others) - lost >= self.least and len(self.gone.union(went)) >= self.least


def _at(place: int, members: Sequence[Candidate]) -> Iterator[str]:
    return (value for one in members if (value := one.values[place]) is not None)
