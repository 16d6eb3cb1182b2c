"""One round of local search over blocks of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dbanon.kernels.auto.clusters import make_clusters
from dbanon.kernels.auto.cuts import make_cutter
from dbanon.kernels.auto.diversity import make_rules
from dbanon.kernels.auto.moves import (
    absorb_failing,
    dissolve_clusters,
    make_search,
    pass_rows,
    patience,
)
from dbanon.kernels.auto.pools import make_pool
from dbanon.kernels.auto.rebuild import Rebuild, rebuild_clusters
from dbanon.kernels.compile import kernel
from dbanon.kernels.random import make_dice

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def improve_block(
    codes: NDArray[np.int32],
    sensitive: NDArray[np.int32],
    flat: NDArray[np.float64],
    layout: NDArray[np.int64],
    rules: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    label: NDArray[np.int32],
    numbers: NDArray[np.int64],
) -> None:
    """Run one round on the rows of a block.

    codes: (n, d), sensitive: (n, s) and label: (n,), the cluster of each row, which is replaced by
    the new one; numbers: (7,) k, clusters, row passes, tries a cluster, most clusters in a pool,
    seed, block.
    """
    k, n_clusters = numbers[0], numbers[1]
    n = codes.shape[0]
    n_slots = min(n_clusters + n_clusters // 2 + 4, n // k + 1)
    s = make_clusters(codes, flat, layout, label, max(n_slots, n_clusters))
    r = make_rules(rules[0], rules[1], rules[2], sensitive)
    dice = make_dice(numbers[5], numbers[6])
    w = make_search(s, r, k, dice)
    order = np.arange(n)
    absorb_failing(w, order)
    saved = 0.0
    for _ in range(numbers[2]):
        saved += pass_rows(w, order)
    patient = patience(s, saved)
    dissolve_clusters(w, order, patient)
    most = min(numbers[4], n_clusters)
    b = Rebuild(
        make_pool(codes, flat, layout, n, n // k + 2),
        make_cutter(codes, flat, layout, n),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(n // k + 2, np.int64),
        np.empty(n, np.int64),
        np.empty(s.size.shape[0], np.int64),
    )
    rebuild_clusters(w, b, numbers[3], patient)
    for row in range(n):
        label[row] = s.owner[row]
