"""How sure one can be of a rate that was found on some persons."""

from __future__ import annotations

from scipy.special import betaincinv

_MISSED = 0.05


def interval(right: float, tried: int) -> tuple[float, float]:
    """Return the interval of 95 % of a rate (Clopper, Pearson, Biometrika 1934).

    right: of how many tried the attacker was right, or the sum of the probabilities of that. Such a
    sum varies no more than a count of the same mean does (Hoeffding 1956), so that the interval is
    too wide then rather than too narrow.
    """
    if not 0 <= right <= tried or tried < 1:
        msg = "nobody can be right more often than it is tried"
        raise ValueError(msg)
    wrong = tried - right
    low = float(betaincinv(right, wrong + 1, _MISSED / 2)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, wrong, 1 - _MISSED / 2)) if wrong > 0 else 1.0
    return low, high
