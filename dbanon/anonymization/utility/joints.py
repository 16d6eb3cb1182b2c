"""How often readers see two labels of two columns together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.utility.readings import Reading


def published_pairs(a: Reading, b: Reading) -> Any | None:  # noqa: ANN401 - scipy has no types
    """Return the published rows of each pair of labels as a sparse matrix, (labels a, labels b).

    None of two sensitive columns, of which it is known only how often a class has each alone.
    """
    if a.classes is not None and b.classes is not None:
        return None
    of_a, of_b, rows = a.labels, b.labels, a.rows
    if b.classes is not None:
        of_a, rows = a.labels[b.classes], b.rows
    elif a.classes is not None:
        of_b = b.labels[a.classes]
    return _sparse(of_a, of_b, rows, shape=(a.n_labels, b.n_labels))


def source_pairs(a: Reading, b: Reading) -> Any:  # noqa: ANN401 - scipy has no types
    """Return the rows of the source of each pair of codes as a sparse matrix."""
    ones = np.ones(len(a.codes), np.int64)
    return _sparse(a.codes, b.codes, ones, shape=(a.n_codes, b.n_codes))


def _sparse(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    rows: NDArray[np.int64],
    *,
    shape: tuple[int, int],
) -> Any:  # noqa: ANN401 - scipy has no types
    from scipy.sparse import coo_matrix

    return coo_matrix((rows.astype(np.float64), (first, second)), shape=shape).tocsr()
