"""Format figures, for terminals and pages alike."""

from __future__ import annotations

_WHOLE_SHARE, _WHOLE = 10, 1_000  # shares and figures from which decimals are omitted


def percent(share: float) -> str:
    """Format a rate or a loss in percent."""
    return f"{share:,.0%}" if abs(share) >= _WHOLE_SHARE else f"{share:.2%}"


def number(value: float | None) -> str:
    """Format a figure with its leading digits; a large one as a whole number."""
    if value is None:
        return "-"
    is_whole = float(value).is_integer() or abs(value) >= _WHOLE
    return f"{value:,.0f}" if is_whole else f"{value:.4g}"


def strength(value: float | None) -> str:
    """Format a correlation, or an area under a curve."""
    return "-" if value is None else f"{value:.2f}"


def at_most(share: float, *, is_bound: bool) -> str:
    """Format a share in percent, with "at most" for a bound."""
    return f"at most {percent(share)}" if is_bound else percent(share)
