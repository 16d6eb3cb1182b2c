"""Distinct l-diversity (Machanavajjhala et al., ICDE 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LDiversity:
    """Every class has at least l distinct values of the sensitive column; NULL is a value."""

    parameter: ClassVar[str] = "l"
    per_sensitive: ClassVar[bool] = True

    def achieved(self, classes: NDArray[np.int32], values: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the number of distinct values of each class."""
        n_values = int(values.max(initial=0)) + 1
        pairs = np.unique(classes.astype(np.int64) * n_values + values)
        return np.bincount(pairs // n_values)
