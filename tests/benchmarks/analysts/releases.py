"""Adult as different algorithms publish it, as dbanon's own reports read it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from samples.datasets import load
from samples.published import publish

from dbanon.anonymization.released.reading import of_outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from dbanon.anonymization.released.cells import Released

LEFT_OUT = 0.02


class Setting(NamedTuple):
    k: int
    l: int


SETTINGS = (Setting(5, 1), Setting(10, 1), Setting(50, 1), Setting(5, 3))


class Way(NamedTuple):
    """How to publish: the name of the line, whether as sets, and fields of the policy."""

    name: str
    sets: bool
    changes: Mapping[str, object]


WAYS = (
    Way("auto", sets=False, changes={}),
    Way("auto, loss = il", sets=False, changes={"params": {"loss": "il"}}),
    Way("auto, sets", sets=True, changes={}),
    Way("k-member", sets=False, changes={"algorithm": "k-member", "params": {"cost": "ncp"}}),
    Way("mondrian", sets=False, changes={"algorithm": "mondrian"}),
    Way("microaggregation", sets=False, changes={"algorithm": "microaggregation"}),
    Way(
        "full-domain, 2 % left out",
        sets=False,
        changes={"algorithm": "full-domain", "max_suppressed": LEFT_OUT},
    ),
)


class Release(NamedTuple):
    """A published relation: the name of its algorithm, its loss, and what readers see."""

    name: str
    ncp: float
    seen: Released


def releases(
    setting: Setting, *, rows: np.ndarray | None = None, not_quasi: tuple[str, ...] = ()
) -> Iterator[Release]:
    """Publish Adult, or some of its rows, in each way; not_quasi: see ``load``."""
    tables = {sets: load("adult", sets=sets, not_quasi=not_quasi) for sets in (False, True)}
    for way in WAYS:
        table = tables[way.sets]
        if rows is not None:
            encoded, source = table.encoded.take(rows), table.source.take(rows)
            table = dataclasses.replace(table, encoded=encoded, source=source)
        scored = publish(table, k=setting.k, l=setting.l, **way.changes)
        seen = of_outcome(table.encoded, scored.outcome, table.policy)
        yield Release(way.name, scored.ncp, seen)
