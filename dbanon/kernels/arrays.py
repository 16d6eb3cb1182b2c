"""Array types of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Bools: TypeAlias = "NDArray[np.bool_]"
Floats: TypeAlias = "NDArray[np.float64]"
Int32s: TypeAlias = "NDArray[np.int32]"
Int64s: TypeAlias = "NDArray[np.int64]"
UInt64s: TypeAlias = "NDArray[np.uint64]"
