"""Upper bounds by the models on the probability of a correct guess.

They hold if the attacker cannot distinguish the rows of a class by their values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from dbanon.domain.assignment import SensitiveDomain, height_shares
from dbanon.models.base import EQUAL, ORDERED, Model, Scope
from dbanon.models.closeness.beta_likeness import ENHANCED, BetaLikeness
from dbanon.models.closeness.delta_disclosure import DeltaDisclosure
from dbanon.models.closeness.t_closeness import TCloseness
from dbanon.models.diversity.alpha_k_anonymity import AlphaKAnonymity
from dbanon.models.diversity.entropy_l_diversity import EntropyLDiversity
from dbanon.models.diversity.l_diversity import LDiversity
from dbanon.models.diversity.listed_alpha_k_anonymity import ListedAlphaKAnonymity
from dbanon.models.diversity.m_uniqueness import MUniqueness
from dbanon.models.diversity.p_sensitivity import PSensitivity
from dbanon.models.diversity.probabilistic_l_diversity import ProbabilisticLDiversity
from dbanon.models.diversity.recursive_l_diversity import RecursiveLDiversity
from dbanon.models.registry import MODELS, model_of, of_scope, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.policy import Policy

_CERTAIN = 1 - 1e-9
_TWO = 2  # values at least for uncertainty


@dataclass(frozen=True, eq=False, slots=True)
class Limits:
    """Bounds by the models on the values of a class.

    whole: (m,) share of each value in the relation; value: (m,) greatest share of each in a class;
    gain: greatest excess of the share of any set of values over that in the relation; distinct:
    least number of values in a class.
    """

    whole: NDArray[np.float64]
    value: NDArray[np.float64]
    gain: float
    distinct: int

    @property
    def most(self) -> float | None:
        """Greatest share of a value in a class, None if unbounded."""
        return below_one(float(np.minimum(self.value, self.whole + self.gain).max(initial=0.0)))

    def most_of(self, values: NDArray[np.bool_]) -> float | None:
        """Return the greatest share of any of the sets of values, (s, m), None if unbounded."""
        by_value = values @ self.value
        by_gain = values @ self.whole + self.gain
        return below_one(float(np.minimum(by_value, by_gain).max(initial=0.0)))

    def most_without(self, excluded: int) -> float | None:
        """Return the greatest share of a value after excluding some others."""
        most = self.most
        if most is None or excluded * most >= _CERTAIN:
            return None
        return below_one(most / (1 - excluded * most))


def least_rows(policy: Policy) -> int:
    """Return the least number of rows of every class."""
    return max(policy.k, policy.l)


def found_among(policy: Policy, persons: NDArray[np.int32] | None) -> float | None:
    """Return the greatest probability of finding a person's row in a class; None if unbounded.

    persons: of each row, None if each row is one. Several rows in a class are found more often.
    """
    several = persons is not None and bool((np.bincount(persons) > 1).any())
    return None if several else one_in(least_rows(policy))


def one_in(rows: int) -> float | None:
    """Return the probability of finding one of these rows, None if it may be certain."""
    return 1 / rows if rows > 1 else None


def limits(
    policy: Policy, column: str, whole: NDArray[np.float64], domain: SensitiveDomain | None
) -> Limits:
    """Return the bounds by a policy's models on the values of a sensitive column.

    whole: (m,) share of each code in the relation; domain: of the codes, for models with distances.
    """
    value, gain, distinct = np.ones(len(whole)), math.inf, 1
    for model in _models(policy, column):
        n_values = int((whole > 0).sum())
        value = np.minimum(value, _greatest_share(model, n_values))
        if isinstance(model, LDiversity | PSensitivity):
            distinct = max(distinct, int(model.required))
        elif isinstance(model, TCloseness):
            gain = min(gain, _gain(model, n_values, domain))
        elif isinstance(model, ListedAlphaKAnonymity) and domain is not None:
            listed = domain.codes_of(model.listed)
            value[listed] = np.minimum(value[listed], model.alpha)
        elif isinstance(model, BetaLikeness | DeltaDisclosure):
            value = np.minimum(value, whole * _factor(model, whole))
    found = Limits(whole, value, gain, distinct)
    if found.most is not None:
        found = Limits(whole, value, gain, max(distinct, _TWO))
    return found


def of_cells(
    policies: Sequence[Policy], column: str, whole: NDArray[np.int64]
) -> tuple[float | None, int]:
    """Return the greatest share and least number of values among persons of the same classes.

    For several releases that were assessed together. Models that compare with a whole are ignored.
    whole: (m,) frequency of each value in one of the relations.
    """
    likeliest, distinct = 0.0, len(whole)
    for policy in policies:
        own = tuple(s for s in policy.models if not MODELS[s.name].of_whole)
        found = limits(replace(policy, models=own), column, whole / max(whole.sum(), 1), None)
        likeliest = max(likeliest, 1.0 if found.most is None else found.most)
        distinct = min(distinct, found.distinct)
    return below_one(likeliest), distinct


def _models(policy: Policy, column: str) -> Iterator[Model]:
    """Yield the models of a sensitive column."""
    names = [column]
    for spec in of_scope(policy.models, Scope.SENSITIVE):
        if column in sensitive_of(spec, names):
            yield model_of(spec)


def _greatest_share(model: Model, n_values: int) -> float:
    """Return the greatest share of a value in a class, as bounded by a model."""
    if isinstance(model, AlphaKAnonymity):
        return model.alpha
    if isinstance(model, ProbabilisticLDiversity):
        return 1 / model.l
    if isinstance(model, MUniqueness):
        return 1 / model.m
    if isinstance(model, RecursiveLDiversity) and model.l > 1:
        # The first is less than c times what follows from the l-th on, so less than c of c + 1.
        return model.c / (1 + model.c)
    if isinstance(model, EntropyLDiversity):
        return share_at(math.log(model.l), n_values)
    return 1.0


def share_at(entropy: float, n_values: int) -> float:
    """Return the greatest share of a value among n_values with at least this entropy."""
    if entropy <= 0 or n_values < _TWO:
        return 1.0
    least = 1 / n_values

    def excess(share: float) -> float:
        rest = 1 - share
        return -share * math.log(share) - rest * math.log(rest / (n_values - 1)) - entropy

    if excess(least) <= 0:
        return least
    return float(brentq(excess, least, 1 - 1e-15))


def _gain(model: TCloseness, n_values: int, domain: SensitiveDomain | None) -> float:
    """Return by how much the share of a set of values may exceed that in the relation."""
    if model.distance == EQUAL:
        return model.t
    if model.distance == ORDERED:
        return model.t * max(n_values - 1, 1)
    tree = None if domain is None else domain.tree
    if tree is None:
        return math.inf
    heights = height_shares(tree)[tree.parent[tree.leaves]] if tree.n_leaves > 1 else np.ones(1)
    nearest = float(heights.min())
    return model.t / nearest if nearest > 0 else math.inf


def _factor(
    model: BetaLikeness | DeltaDisclosure, whole: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the factor by which each value may be more frequent than in the relation."""
    if isinstance(model, DeltaDisclosure):
        return np.full(len(whole), math.exp(model.delta))
    factor = np.full(len(whole), model.beta)
    if model.kind == ENHANCED:
        factor = np.minimum(factor, -np.log(np.maximum(whole, 1e-300)))
    return np.asarray(1 + factor, np.float64)


def below_one(share: float) -> float | None:
    """Return a share, None if it is 1."""
    return share if share < _CERTAIN else None
