"""Figures, models and searches as text, on pages and terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.messages import anatomy_in_words
from dbanon.domain.policy import L_DIVERSITY, ModelSpec, Policy, anatomy_level
from dbanon.models.base import COLUMNS
from dbanon.models.registry import MODELS, texts, title

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def search(policy: Policy) -> str:
    """Format the algorithm of a policy with its parameters."""
    chosen = {**policy.params} | ({} if policy.block is None else {"block": policy.block})
    spelled = ", ".join(f"{name} = {value}" for name, value in chosen.items())
    return f"{policy.algorithm} ({spelled})" if spelled else policy.algorithm


def models(specs: Iterable[ModelSpec]) -> str:
    """Format every requested model, with its columns."""
    return ", ".join(map(asked, specs))


def asked(spec: ModelSpec) -> str:
    """Format a requested model, with its columns."""
    columns = texts(spec, COLUMNS)
    spelled = title(spec) if spec.name in MODELS else spec.name
    return f"{spelled} of {' and '.join(columns)}" if columns else spelled


def anatomy(policy: Policy) -> str:
    """Return notes on an anatomy release; empty for others."""
    return anatomy_in_words(anatomy_level(policy)) if policy.anatomy else ""


def diversity(policy: Policy) -> str:
    """Format the minimum number of distinct values, with the columns unless it is all."""
    spec = policy.model(L_DIVERSITY)
    if spec is None:
        return "1"
    columns = spec.params.get(COLUMNS)
    named = f" ({', '.join(columns)})" if isinstance(columns, tuple) and columns else ""
    return f"{spec.params['l']:,}{named}"
