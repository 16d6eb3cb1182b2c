"""Policies that publish by anatomy, and their guarantee: probabilistic l-diversity of buckets.

Quasi-identifiers are published unchanged, so membership and row of a person are not hidden. In each
bucket, at most one person in l has the same sensitive value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, PROBABILISTIC, ModelSpec

if TYPE_CHECKING:
    from dbanon.domain.policy import Policy


def of_buckets(policy: Policy) -> Policy:
    """Return a policy with distinct l-diversity replaced by that of buckets, and without k = 1."""
    if not policy.anatomy:
        return policy
    levels = [n for spec in policy.models if (n := level_of(spec)) is not None]
    asked = [ModelSpec(PROBABILISTIC, {"l": max(levels)})] if levels else []
    others = [
        spec
        for spec in policy.models
        if level_of(spec) is None and not (spec.name == K_ANONYMITY and spec.params.get("k") == 1)
    ]
    return replace(policy, models=(*asked, *others))


def level(policy: Policy) -> int | None:
    """Return the l of a policy from ``of_buckets``, None if it has none."""
    spec = policy.model(PROBABILISTIC)
    return None if spec is None else level_of(spec)


def level_of(spec: ModelSpec) -> int | None:
    """Return the l of a plain model of distinct or probabilistic diversity, None for others."""
    if spec.name not in {L_DIVERSITY, PROBABILISTIC} or set(spec.params) != {"l"}:
        return None
    asked = spec.params["l"]
    return int(asked) if isinstance(asked, int | float) and asked == int(asked) else None
