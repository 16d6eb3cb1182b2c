"""All that is known of the risk of a publication."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.risk.disclosure import disclosures
from dbanon.anonymization.risk.population import members, persons, tells
from dbanon.anonymization.risk.reidentification import (
    UNKNOWN,
    of_counts,
    of_sample,
    risks,
    size_bands,
)
from dbanon.anonymization.risk.unique_sets import MOST_COLUMNS, unique_sets
from dbanon.anonymization.risk.uniqueness import uniqueness
from dbanon.domain.report import Attacker, Risk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.report import Reidentification, UniqueSet


@dataclass(frozen=True, eq=False, slots=True)
class Everybody:
    """The population that the persons of a table are a part of, as far as it is known.

    size: how many it has, None where nobody says; counted: what readers see, over the rows of the
    population in place of those of the table, None where they are not at hand; name: what it is.
    """

    size: int | None = None
    counted: Released | None = None
    name: str = ""


def risk(
    released: Released,
    everybody: Everybody,
    *,
    threshold: float,
    sizes: NDArray[np.int64] | None = None,
    achieved: float | None = None,
) -> Risk:
    """Return the risk, but for sets of columns and attacks.

    sizes: the rows that readers cannot tell apart, where these are no classes, as by anatomy;
    achieved: the fewest persons of a class, where a person may have several rows.
    """
    alike = released.size if sizes is None else sizes
    found, basis = None, UNKNOWN
    if everybody.counted is not None and tells(everybody.counted) and sizes is None:
        found, basis = of_counts(persons(everybody.counted), alike), everybody.name
    elif everybody.size is not None and alike.sum():
        sampled = min(float(alike.sum() / everybody.size), 1.0)
        found, basis = of_sample(alike, sampled), f"an estimate for {everybody.size:,} persons"
    identified = risks(alike, threshold=threshold, population=found, basis=basis)
    return Risk(
        reidentification=tuple(_of_persons(one, achieved) for one in identified),
        sizes=size_bands(alike),
        disclosures=disclosures(released),
        uniqueness=() if everybody.size is None else uniqueness(members(released), everybody.size),
    )


def _of_persons(found: Reidentification, achieved: float | None) -> Reidentification:
    """Return the prosecutor's risk among as few persons as the database has counted in a class."""
    if achieved is None or found.attacker is not Attacker.PROSECUTOR:
        return found
    return replace(found, highest=max(found.highest, 1.0 / max(achieved, 1.0)))


def sets_of(released: Released, rows: NDArray[np.int64], *, least: int) -> tuple[UniqueSet, ...]:
    """Return which quasi-identifiers make sampled rows of the source unique.

    least: the fewest persons of whom a set is told.
    """
    columns = released.table.quasi[:MOST_COLUMNS]
    coded = [(column.name, column.codes[rows].astype(np.int64)) for column in columns]
    persons = None if released.persons is None else released.persons[rows]
    return unique_sets(coded, persons=persons, least=least)
