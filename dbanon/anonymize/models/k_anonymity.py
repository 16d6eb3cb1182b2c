"""k-anonymity (Samarati 2001, Sweeney 2002)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class KAnonymity:
    """Every class has at least k rows; a row counts itself."""

    parameter: ClassVar[str] = "k"
    per_sensitive: ClassVar[bool] = False

    def achieved(
        self,
        classes: NDArray[np.int32],
        values: NDArray[np.int32],  # noqa: ARG002 - the interface's; this model is about rows
    ) -> NDArray[np.int64]:
        """Return the number of rows of each class."""
        return np.bincount(classes)
