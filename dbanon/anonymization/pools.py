"""How many new persons have to come before they are published together, and how hard to search.

Whether a few newcomers are published must not depend on their values: whoever knows who came would
read these from the timing. So a pool of them is large enough for its values to suffice anyway.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.domain.policy import AUTO
from dbanon.models.base import DistinctModel, Scope
from dbanon.models.registry import MODELS, arguments, is_strict, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.policy import ModelSpec, Policy
    from dbanon.domain.release import Published

_RARE = 1e-6
"""The probability with which a pool may have too few values."""
_OTHERWISE = 10
"""How many times as large a pool is for other models, of which no probability is computed."""

_CLASSES, _SHARE = 100, 10
"""Least classes of k in a pool, for the loss: fewer if that is more than this part of a table."""

_MANY = 100_000
"""Published persons beside whom a pool is searched with the least effort."""


def with_effort(policy: Policy, published: int) -> Policy:
    """Return the policy of a pool with the effort of its search; published: the other persons.

    A search of a large table has few rounds, and a pool beside one has no more: with the rounds of
    a small table, 5,000 persons would cost half as much as a search of 1,000,000. An effort that
    the policy declares stays.
    """
    if policy.algorithm != AUTO or published < _MANY:
        return policy
    return replace(policy, params={"effort": "fast", **policy.params})


def least_size(
    policies: Sequence[Policy],
    published: Sequence[Sequence[Published]],
    kept_values: Mapping[str, str | None],
) -> int | None:
    """Return how many persons with these kept values are a pool, None if no number suffices.

    policies, published: of each table, that of the persons first. Kept values that were never
    published count as the published ones that require the most.
    """
    persons = sum(one.persons for one in published[0])
    sizes: list[int | None] = []
    for policy, of_table in zip(policies, published, strict=True):
        own = sum(one.persons for one in of_table)
        without = max(0.0, 1 - own / max(persons, 1))
        alike = [
            one
            for one in of_table
            if all(kept_values.get(n) == v for n, v in one.kept_values.items())
        ]
        found = [
            pool_size(policy, one.counts, persons=one.persons, without=without)
            for one in alike or of_table
        ]
        sizes.append(max((size for size in found if size is not None), default=None))
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def pool_size(
    policy: Policy, published: Mapping[str, Sequence[int]], *, persons: int, without: float = 0.0
) -> int | None:
    """Return how many persons a pool needs, None if no number suffices.

    published: how often each value of a sensitive column is published, persons: of how many;
    without: the share of persons who have no row of the table.
    """
    usual = min(_CLASSES * policy.k, persons // _SHARE)
    sizes: list[int | None] = [2 * policy.k, policy.pool_size or usual]
    for spec in policy.models:
        if MODELS[spec.name].scope is not Scope.SENSITIVE:
            continue
        level = _level(spec)
        is_exact = issubclass(MODELS[spec.name], DistinctModel) and not is_strict(spec)
        times = 1 if is_exact else _OTHERWISE
        for column in sensitive_of(spec, published):
            size = draws_needed(published.get(column, ()), level, without=without)
            sizes.append(None if size is None else times * size)
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def _level(spec: ModelSpec) -> int:
    """Return how many distinct values a model asks for, two if it does not say."""
    model = MODELS[spec.name]
    given = arguments(spec).get(model.limit if issubclass(model, DistinctModel) else "l", 2)
    return max(math.ceil(given), 1) if isinstance(given, int | float) else 2


def draws_needed(counts: Sequence[int], l: int, *, without: float = 0.0) -> int | None:
    """Return the least number of draws with fewer than l values at most once in a million times.

    counts: how often each value occurs among what is drawn from; without: the share of draws that
    have no value. None if there are fewer than l.
    """
    shares = np.array([count for count in counts if count > 0], np.float64)
    if l <= 1:
        return 1
    if len(shares) < l:
        return None
    shares *= (1 - without) / shares.sum()
    most = 1
    while probability(shares, l, most) > _RARE:
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if probability(shares, l, middle) <= _RARE else (middle, most)
    return most


def probability(shares: NDArray[np.float64], l: int, draws: int) -> float:
    """Return the probability of fewer than l values in so many draws, from l = 4 on a bound of it.

    shares: (v,) of each value, l <= v; what they lack of 1 is that of draws without a value.
    """
    v, none = len(shares), max(0.0, 1 - float(shares.sum()))
    ones = ((none + shares) ** draws).sum()
    if l == 2:  # noqa: PLR2004 - at most one value, by inclusion and exclusion
        return float(ones - (v - 1) * none**draws)
    if l == 3:  # noqa: PLR2004 - at most two values
        pairs = (none + shares[:, None] + shares)[np.triu_indices(v, 1)]
        none_at_all = math.comb(v - 1, 2) * none**draws
        return float((pairs**draws).sum() - (v - 2) * ones + none_at_all)
    greatest = none + float(np.sort(shares)[1 - l :].sum())
    return min(1.0, math.comb(v, l - 1) * greatest**draws)
