"""What a policy that publishes by anatomy can say, and what it promises.

Every quasi-identifier is published as it is, so that nothing is left that could hide who is in the
table, nor who a row is of. All that is promised is about the sensitive value: in each bucket at
most one person in l has the same one, which is probabilistic l-diversity of buckets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.policy import (
    BUCKET,
    COUNT,
    K_ANONYMITY,
    L_DIVERSITY,
    PROBABILISTIC,
    ColumnRule,
    ModelSpec,
    Role,
)
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.domain.policy import Policy

_NONE_TO_HIDE_AMONG = (
    "anatomy publishes quasi-identifiers as they are, and whoever knows them finds the row and"
    " knows that somebody is in the table"
)


def of_buckets(policy: Policy) -> Policy:
    """Return a policy as what anatomy promises by it: any count of values is one of buckets.

    k = 1 asks for nothing and goes. Any other policy is returned as it is.
    """
    if not policy.anatomy:
        return policy
    levels = [n for spec in policy.models if (n := _level(spec)) is not None]
    asked = [ModelSpec(PROBABILISTIC, {"l": max(levels)})] if levels else []
    others = [
        spec
        for spec in policy.models
        if _level(spec) is None and not (spec.name == K_ANONYMITY and spec.params.get("k") == 1)
    ]
    return replace(policy, models=(*asked, *others))


def level(policy: Policy) -> int | None:
    """Return the l of a policy ``of_buckets``, None where nothing says it."""
    spec = policy.model(PROBABILISTIC)
    return None if spec is None else _level(spec)


def _level(spec: ModelSpec) -> int | None:
    """Return the l of a model of distinct or of probabilistic diversity and nothing else."""
    if spec.name not in {L_DIVERSITY, PROBABILISTIC} or set(spec.params) != {"l"}:
        return None
    asked = spec.params["l"]
    return int(asked) if isinstance(asked, int | float) and asked == int(asked) else None


def problems(policy: Policy) -> Iterator[str]:
    """Yield what keeps a policy from being published by anatomy, if it asks for that."""
    if not policy.anatomy:
        return
    sensitive = policy.with_role(Role.SENSITIVE)
    if len(sensitive) != 1:
        yield (
            f"anatomy publishes the values of one sensitive column, and there are {len(sensitive)}:"
            " buckets that are diverse in each say nothing of two together"
        )
    for spec in of_buckets(policy).models:
        if _level(spec) is None:
            yield f"{_NONE_TO_HIDE_AMONG}: it cannot promise {spec.name}, but l alone"
    for key in ("rows_per_subject", "population"):
        if getattr(policy, key) is not None:
            yield f"{_NONE_TO_HIDE_AMONG}: {key} has no meaning with it"
    unused = {"block": policy.block is not None, "max_suppressed": policy.max_suppressed > 0}
    for key in (key for key, is_given in unused.items() if is_given):
        yield f"anatomy deals all persons into buckets at random: leave {key} out"
    if policy.labels:
        yield "anatomy publishes no labels: leave labels out"
    yield from _of_columns(policy)


def _of_columns(policy: Policy) -> Iterator[str]:
    for rule in policy.columns:
        name = f"column {quote_identifier(rule.column)}"
        taken = {BUCKET, COUNT} if rule.role is Role.SENSITIVE else {BUCKET}
        if rule.role.is_published and rule.column in taken:
            yield f"{name} has the name of one that anatomy adds: rename it in a view"
        exact = ColumnRule(rule.column, rule.role, weight=rule.weight, order=rule.order)
        if rule.role is Role.QUASI and policy.masked(rule.column):
            yield f"{name} is published as it is by anatomy: leave its masking out"
        if rule.role is Role.QUASI and replace(rule, allow=()) != exact:
            yield f"{name} is published as it is by anatomy: leave out all but its role"
