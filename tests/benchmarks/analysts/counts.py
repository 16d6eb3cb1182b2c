"""COUNT queries of the algorithms' releases, the same for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysts.releases import SETTINGS, releases
from dbanon.anonymization.utility.queries import SELECTIVITIES, draw, errors
from dbanon.anonymization.utility.readings import readings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 7


def lines(queries: int) -> Iterator[dict[str, object]]:
    """Yield for each setting and algorithm the errors of so many queries of each selectivity."""
    asked = []
    for setting in SETTINGS:
        for release in releases(setting):
            readings = readings_of(release.seen)
            if not asked:  # which depends on the source alone
                random = np.random.default_rng(SEED)
                asked = [
                    draw(readings, share=s, n=queries, generator=random) for s in SELECTIVITIES
                ]
            ncp = 100 * release.ncp
            line = {"k": setting.k, "l": setting.l, "algorithm": release.name, "NCP %": ncp}
            for share, each in zip(SELECTIVITIES, asked, strict=True):
                off = 100 * errors(readings, each)
                line[f"median at {100 * share:g} %"] = float(np.median(off))
                line[f"95th at {100 * share:g} %"] = float(np.percentile(off, 95))
            yield line
