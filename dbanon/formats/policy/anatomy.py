"""What a policy that publishes by anatomy can say, and what it promises.

Every quasi-identifier is published as it is, so that nothing is left that could hide who is in the
table, nor who a row is of. All that is promised is about the sensitive value: in each bucket at
most one person in l has the same one, which is probabilistic l-diversity of buckets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, PROBABILISTIC, ModelSpec

if TYPE_CHECKING:
    from dbanon.domain.policy import Policy


def of_buckets(policy: Policy) -> Policy:
    """Return a policy as what anatomy promises by it: any count of values is one of buckets.

    k = 1 asks for nothing and goes. Any other policy is returned as it is.
    """
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
    """Return the l of a policy ``of_buckets``, None where nothing says it."""
    spec = policy.model(PROBABILISTIC)
    return None if spec is None else level_of(spec)


def level_of(spec: ModelSpec) -> int | None:
    """Return the l of a model of distinct or of probabilistic diversity and nothing else."""
    if spec.name not in {L_DIVERSITY, PROBABILISTIC} or set(spec.params) != {"l"}:
        return None
    asked = spec.params["l"]
    return int(asked) if isinstance(asked, int | float) and asked == int(asked) else None
