"""Layout of the costs of boxes in flat arrays (see :mod:`dbanon.kernels.boxes.costs`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


START, SIZE, STRIDE, EMPTY_LO, EMPTY_HI = 0, 1, 2, 3, 4
TABLE, SET = -1, -2
HALF = 31
NOTHING, NONE = 2**31 - 1, -1  # bounds of a box of no rows

# This many columns make a table wide: no row is near others in all of them.
WIDE = 12

# Rules of diversity (see :mod:`dbanon.kernels.auto.diversity`).
DISTINCT, SHARE, ENTROPY, RECURSIVE, BETWEEN, EQUAL, ORDERED, TREE = 0, 1, 2, 3, 4, 5, 6, 7

# The bounds of a cluster (see :mod:`dbanon.kernels.auto.clusters`).
LO, HI, LO2, HI2 = 0, 1, 2, 3


Bools: TypeAlias = "NDArray[np.bool_]"
Floats: TypeAlias = "NDArray[np.float64]"
Int32s: TypeAlias = "NDArray[np.int32]"
Int64s: TypeAlias = "NDArray[np.int64]"
UInt64s: TypeAlias = "NDArray[np.uint64]"
