"""One round of local search over blocks of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.auto.clusters import make_clusters
from dbanon.kernels.auto.diversity import make_rules
from dbanon.kernels.auto.moves import (
    absorb_failing,
    dissolve_clusters,
    make_search,
    pass_rows,
    patience,
)
from dbanon.kernels.auto.rebuild import Ways, make_rebuild, rebuild_clusters
from dbanon.kernels.auto.rotation import make_ring, rotate
from dbanon.kernels.compile import ZERO, kernel
from dbanon.kernels.random import make_dice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.kernels.auto.carving import Levels


MILLIONTH = 1e-6


@kernel
def improve_block(
    codes: NDArray[np.int32],
    sensitive: NDArray[np.int32],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    rules: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    levels: Levels,
    label: NDArray[np.int32],
    numbers: NDArray[np.int64],
) -> None:
    """Run one round on the rows of a block; ``label`` (n,), their clusters, is replaced.

    codes: (n, d), sensitive: (n, s); levels: of ``Ladders``; numbers: (11,) k, clusters, row
    passes, tries per cluster, most clusters in a pool, seed, block, rotations, heat in millionths,
    flag of rows that may go anywhere, flag of carving.
    """
    k, n_clusters = numbers[0], numbers[1]
    n = codes.shape[0]
    n_slots = min(n_clusters + n_clusters // 2 + 4, n // k + 1)
    s = make_clusters(codes, flat, layout, label, max(n_slots, n_clusters))
    r = make_rules(rules[0], rules[1], rules[2], sensitive)
    w = make_search(s, r, k, make_dice(numbers[5], numbers[6]))
    order = np.arange(n)
    absorb_failing(w, order)
    saved = 0.0
    for _ in range(numbers[2]):
        saved += pass_rows(w, order)
    ring = make_ring(s.size.shape[0] if numbers[7] > 0 else ZERO)
    for _ in range(numbers[7]):
        saved += rotate(w, ring)
    patient = patience(s, saved)
    dissolve_clusters(w, order, patient)
    how = Ways(numbers[8] * MILLIONTH, numbers[9] > 0, numbers[10] > 0)
    b = make_rebuild(s, k, min(numbers[4], n_clusters), levels, how.carved)
    rebuild_clusters(w, b, numbers[3], patient, how)
    for row in range(n):
        label[row] = s.owner[row]
