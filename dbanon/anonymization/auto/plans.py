"""Plans of the efforts: the number of rounds of local search, and the content of each."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from dbanon.anonymization.auto.rounds import (
    ANNEALED,
    LARGE,
    LIGHT,
    MANY_COLUMNS,
    MOVES,
    PERSONS,
    SELDOM,
    TURNS,
    Effort,
)
from dbanon.anonymization.auto.space import Space, can_be_carved
from dbanon.anonymization.auto.start import BLOCKS, CARVING, CUTS, USUAL, Carving
from dbanon.kernels.layout import WIDE

SHARES = "shares"
_DENSE = frozenset({BLOCKS, CUTS, CARVING})


class Phase(NamedTuple):
    """Equal rounds of a search; hot rounds cool down."""

    rounds: int
    each: Effort
    mostly_moves: bool = False

    def effort(self, number: int, *, share: float = 0.0) -> Effort:
        """Return the effort of a round; share: elapsed share of a time limit."""
        if self.mostly_moves and (number + 1) % SELDOM > 0:
            return MOVES
        done = max(share, min(number / max(self.rounds, 1), 1.0))
        return self.each._replace(heat=self.each.heat * (1 - done) ** 2)

    def has_faded(self, paid: list[float], space: Space, *, alone: float) -> bool:
        """Return True if recent cold rounds saved too little of what rows lose beyond ``alone``."""
        if self.each.heat > 0.0 or self.mostly_moves or len(paid) <= _IN_VAIN:
            return False
        least = _IN_VAIN * _FADED * space.n_rows / _AT_ROWS
        return paid[-1 - _IN_VAIN] - paid[-1] <= least * (paid[-1] - alone)


class Plan(NamedTuple):
    """Rounds of an effort, as many as ``work`` allows, between fewest and most.

    after_blocks: the fewest after a start in blocks, which leaves more to improve than peeling;
    fewer for large tables, by the root of their size. annealing: work of hot rounds. carving: its
    limits.
    """

    fewest: int
    after_blocks: int
    most: int
    work: float
    annealing: float
    carving: Carving

    def phase(self, space: Space, *, begun: str) -> Phase:
        """Return the rounds with the greatest gain per time; begun: the name of the start."""
        n = space.n_rows
        hot, each = self.hot_rounds(space), _hot(space)
        largest = 4 * SMALL if space.k >= _MIDDLE else SMALL  # large clusters gain more
        if hot >= _LEAST_HOT and (each != ANNEALED or n <= largest):
            return Phase(hot, each)
        affordable = self.work * (1 + SMALL / n) / (n * (1 + space.k / _HALF_AT))
        affordable *= min(max(space.k / _USUAL, _PAIRS_GAIN), _LARGE_GAIN)
        fewest = self.fewest
        if begun in _DENSE:
            longer = _PAIRS_LONGER if space.k < _USUAL else 1.0
            longer *= _WIDE_LONGER if space.codes.shape[1] >= WIDE else 1.0
            fewest = max(fewest, int(longer * self.after_blocks * min(1.0, sqrt(_FULL / n))))
        rounds = int(min(self._most(n), max(fewest, affordable)))
        each = TURNS if n < _TURNED else LIGHT
        return Phase(rounds, each, begun in _DENSE and n > _MANY and space.k < _REBUILT)

    def hot_rounds(self, space: Space) -> int:
        """Return the maximum number of initially hot rounds; persons of many rows have twice."""
        n, each = space.n_rows, _hot(space)
        takes = {MANY_COLUMNS: 6.0, PERSONS: 0.5, LARGE: 1 + space.k / _LARGE_TAKES}.get(each, 1.0)
        affordable = self.annealing * (1 + SMALL / n) / n / takes
        return int(min(self.most / 2 if each == PERSONS else self._most(n), affordable))

    def _most(self, n: int) -> float:
        return min(self.most * (1 + _MORE * SMALL / max(n, SMALL)), _FEW + n / _ROWS_OF_A_ROUND)

    def long_phase(self, space: Space) -> Phase:
        """Return hot rounds for a long time limit, unless there are too many rows."""
        each = _hot(space)
        if EFFORTS["best"].hot_rounds(space) < _LEAST_HOT:
            each = each._replace(heat=0.0)
        return Phase(max(self.fewest, self.hot_rounds(space)), each)

    def slow(self, space: Space) -> Phase:
        """Return the rounds if sensitive values are pressed."""
        rounds = min(self.most // _SLOWER, int(_CUTS * self.work / space.n_rows))
        return Phase(max(self.fewest, rounds, 1), MOVES)


EFFORTS = {
    "fast": Plan(0, 0, 2, 5.0e5, 0.0, Carving(1, 1.0e9)),
    "balanced": Plan(3, 16, 100, 3.3e5, 1.0e6, USUAL),
    "best": Plan(12, 18, 400, 1.2e7, 9.0e6, USUAL),
}
# A round rebuilds pools of a few k rows, which is half of its work at this k.
_HALF_AT = 80
# Large clusters go on gaining for longer than pairs do, relative to clusters of this many rows.
_USUAL, _PAIRS_GAIN, _LARGE_GAIN = 5, 0.5, 4.0
# But pairs that were not peeled begin far from the optimum, and their rounds are short.
_PAIRS_LONGER = 1.5
# Rounds of many columns are short, as they stop rebuilding early.
_WIDE_LONGER = 1.25
SMALL = 10_000
"""So many rows can afford more rounds, and all candidates."""
_FEW, _ROWS_OF_A_ROUND, _MORE = 10, 50, 4
# Fewer rounds than these have no time to cool; those of very large clusters take much longer.
_LEAST_HOT, _LARGE_TAKES, _MIDDLE = 10, 40_000, 8
# Of more rows, changing places gains less in its time than moving.
_TURNED = 100_000
# More rows than these have fewer rounds.
_FULL = 120_000
# Clusters of this size, if k is below this, gain most in the time by moves alone.
_MANY, _REBUILT = 250_000, 10
# If sensitive values are pressed, rounds of moves and cuts of pairs take turns; rebuilding gains
# hardly anything there.
_SLOWER, _CUTS = 4, 1.85
# Rounds end once this number in a row have gained less than this share each, for these rows.
_IN_VAIN, _FADED, _AT_ROWS = 6, 5e-4, 30_000


def _hot(space: Space) -> Effort:
    """Return the effort of a hot round."""
    if space.codes.shape[1] >= WIDE:
        return MANY_COLUMNS
    if can_be_carved(space):
        return LARGE
    return PERSONS if space.surplus and space.n_rows > SMALL else ANNEALED
