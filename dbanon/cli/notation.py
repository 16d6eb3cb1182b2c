"""How figures are written, on the terminal and on pages alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbanon.domain.report.losses import Count

_WHOLE = 10  # shares from which on decimals say nothing


def percent(share: float | None) -> str:
    """Spell a rate or a loss in percent; None is one that may not be told."""
    if share is None:
        return "few"
    return f"{share:,.0%}" if abs(share) >= _WHOLE else f"{share:.2%}"


def number(value: float | None) -> str:
    """Spell a count or a figure."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def counted(count: Count) -> str:
    """Spell a count, or what may be told of it."""
    return count if isinstance(count, str) else f"{count:,}"


def strength(value: float | None) -> str:
    """Spell a correlation, or an area under a curve."""
    return "-" if value is None else f"{value:.2f}"
