"""Registry of attacks on one release, by name."""

from __future__ import annotations

from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dbanon.anonymization.attacks.beliefs import (
    background,
    homogeneity,
    minimality,
    similarity,
    skewness,
)
from dbanon.anonymization.attacks.definetti import definetti
from dbanon.anonymization.attacks.reidentification import (
    journalist,
    linkage,
    marketer,
    membership,
    prosecutor,
)
from dbanon.anonymization.attacks.scenario import Case, NotTried, draw
from dbanon.domain.report import Attack, Attacker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy

ATTACKS: Mapping[str, Callable[[Case, np.random.Generator], Iterator[Attack]]] = {
    "re-identification, prosecutor": prosecutor,
    "re-identification, journalist": journalist,
    "re-identification, marketer": marketer,
    "homogeneity": homogeneity,
    "skewness": skewness,
    "similarity": similarity,
    "background knowledge": background,
    "linkage by distance": linkage,
    "deFinetti": definetti,
    "minimality": minimality,
    "membership": membership,
}
"""Each yields one result, or one for each sensitive column; NotTried if it lacks what it needs."""

_UNSURE = {
    Attacker.JOURNALIST: ("re-identification, journalist", "membership"),
    Attacker.MARKETER: ("re-identification, marketer",),
}
"""Attacks that need no knowledge of membership."""

BY: Mapping[Attacker, tuple[str, ...]] = {
    Attacker.PROSECUTOR: tuple(name for name in ATTACKS if name not in chain(*_UNSURE.values())),
    **_UNSURE,
}
"""Attacks by attacker."""


LATE = "there was no time left"
"""Why an attack was not tried that might have been."""


class Attacked(NamedTuple):
    """Results of attacks, and why others were not tried, by name."""

    attacks: tuple[Attack, ...]
    not_tried: Mapping[str, str]


def attack(
    released: Released,
    policy: Policy,
    *,
    names: tuple[str, ...] = tuple(ATTACKS),
    samples: int,
    seed: int,
    stages: Stages,
    until: float | None = None,
) -> Attacked:
    """Try attacks on persons of the source until a monotonic time; reproducible by the seed."""
    if not released.columns:
        return Attacked((), dict.fromkeys(names, "quasi-identifiers are shown as they are"))
    generator = np.random.default_rng(seed)
    case = draw(released, policy, samples=samples, generator=generator)
    if not case.tried:
        nobody = "no person of the table can be in the relation as it is"
        return Attacked((), dict.fromkeys(names, nobody))

    def run(name: str) -> Iterator[Attack]:
        generator = np.random.default_rng([seed, list(ATTACKS).index(name)])
        return ATTACKS[name](case, generator)

    return in_turn(names, run, stages=stages, until=until)


def in_turn(
    names: Sequence[str],
    run: Callable[[str], Iterator[Attack]],
    *,
    stages: Stages,
    until: float | None,
) -> Attacked:
    """Run attacks by name while time remains; record the others as not tried."""
    found: list[Attack] = []
    not_tried: dict[str, str] = {}
    for name in names:
        if stages.stopped or (until is not None and monotonic() > until):
            not_tried[name] = LATE
            continue
        stages.step(name)
        try:
            found += run(name)
        except NotTried as reason:
            not_tried[name] = str(reason)
    return Attacked(tuple(found), not_tried)
