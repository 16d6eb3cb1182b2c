"""Registry of attacks on two releases, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.attacks.case import NotTried
from dbanon.anonymization.attacks.registry import Attacked, unless_late
from dbanon.anonymization.attacks.together.pair import differencing, draw_both, intersection, join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.anonymization.attacks.together.pair import AttackOnBoth, Shown
    from dbanon.domain.progress import Stages
    from dbanon.domain.report import Attack

ATTACKS_ON_BOTH: Mapping[str, AttackOnBoth] = {
    "join": join,
    "intersection": intersection,
    "differencing": differencing,
}


def attack_both(
    first: Shown,
    second: Shown,
    *,
    is_judged: bool = False,
    samples: int,
    seed: int,
    stages: Stages,
    until: float | None = None,
) -> Attacked:
    """Try attacks that combine two releases; is_judged: as in ``Pair``."""
    generator = np.random.default_rng(seed)
    pair = draw_both(first, second, is_judged=is_judged, samples=samples, generator=generator)
    names = tuple(ATTACKS_ON_BOTH)
    if not pair.first.tried:
        return Attacked((), dict.fromkeys(names, "no person of the table can be in both"))
    found: list[Attack] = []
    not_tried: dict[str, str] = {}
    for name in unless_late(names, not_tried, stages=stages, until=until):
        try:
            found += ATTACKS_ON_BOTH[name](pair)
        except NotTried as reason:
            not_tried[name] = str(reason)
    return Attacked(tuple(found), not_tried)
