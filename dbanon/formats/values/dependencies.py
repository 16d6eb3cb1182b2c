"""Whether one column follows from another, as an age group does from an age."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEWEST = 50  # rows of which something can be said
_SHARED = 0.5  # of the rows have a value that another row has, too
_CHANCE = 1e-9


def determines(first: Sequence[str | None], second: Sequence[str | None]) -> bool:
    """Whether rows that agree in the first column agree in the second, and hardly by chance.

    The columns are those of some rows; a row that lacks one of the two is left out. If they had
    nothing to do with each other, n rows with one value of the first would have one of the second
    with probability sum(p(v)^n) over its values v: the product over all values of the first is to
    be less than one in 10^9. O(rows), and less where a pair of rows speaks against it.
    """
    found: dict[str, str] = {}
    pairs = []
    for one, other in zip(first, second, strict=True):
        if one is None or other is None:
            continue
        if found.setdefault(one, other) != other:
            return False
        pairs.append((one, other))
    sizes = Counter(Counter(one for one, _ in pairs).values())
    shared = sum(size * count for size, count in sizes.items() if size > 1)
    if len(pairs) < _FEWEST or shared < _SHARED * len(pairs):
        return False
    shares = [count / len(pairs) for count in Counter(other for _, other in pairs).values()]
    chance = sum(
        count * math.log(math.fsum(share**size for share in shares) or math.ulp(0.0))
        for size, count in sizes.items()
    )
    return chance < math.log(_CHANCE)
