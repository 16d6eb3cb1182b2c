"""Random numbers that hide persons: from the system, or from a secret key.

A reproducible generator hides no person. Searches may use one, but not the decision which persons
are published, next to whom, or in which order.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_BYTES = 8  # of a number


def shuffled(size: int) -> NDArray[np.int64]:
    """Return the numbers below ``size``, shuffled by the system's random source."""
    return np.argsort(np.frombuffer(os.urandom(_BYTES * size), np.uint64))


def keyed(texts: Iterable[str], count: int, *, key: bytes) -> NDArray[np.uint64]:
    """Return ``count`` numbers of each text, (n, count), at most 8, that depend on the key.

    Equal texts have equal numbers. The key has at most 64 bytes (BLAKE2b, RFC 7693).
    """
    begun = hashlib.blake2b(key=key, digest_size=_BYTES * count)
    digests = bytearray()
    for text in texts:
        one = begun.copy()
        one.update(text.encode())
        digests += one.digest()
    return np.frombuffer(bytes(digests), "<u8").reshape(-1, count)
