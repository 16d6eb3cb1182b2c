"""How likely models let a guess be right, at most.

What is said here holds of somebody to whom the rows of a class are alike: any of them may have any
of its values. It does not hold of somebody who learns which values go with which persons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from dbanon.domain.taxonomy import height_shares
from dbanon.models.base import Scope
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
from dbanon.models.parameters import EQUAL, ORDERED
from dbanon.models.registry import MODELS
from dbanon.models.specs import model_of, of_scope, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dbanon.domain.assignment import SensitiveDomain
    from dbanon.domain.policy import Policy
    from dbanon.models.base import Model

_CERTAIN = 1 - 1e-9
_TWO = 2  # values, of which nobody can be certain


@dataclass(frozen=True, eq=False, slots=True)
class Limits:
    """What models let the values of a class be.

    whole: (m,) the share of each value in the relation; value: (m,) the greatest share of each in a
    class; gain: by how much the share of any set of values may exceed that in the relation, at
    most; distinct: the least number of values of a class.
    """

    whole: NDArray[np.float64]
    value: NDArray[np.float64]
    gain: float
    distinct: int

    @property
    def most(self) -> float | None:
        """The greatest share of a value in a class, None where it may be all of it."""
        return below_one(float(np.minimum(self.value, self.whole + self.gain).max(initial=0.0)))

    def most_of(self, values: NDArray[np.bool_]) -> float | None:
        """Return the greatest share of any of some sets of values, (s, m), None if it may be 1."""
        by_value = values @ self.value
        by_gain = values @ self.whole + self.gain
        return below_one(float(np.minimum(by_value, by_gain).max(initial=0.0)))

    def most_without(self, excluded: int) -> float | None:
        """Return the greatest share of a value among those that are left when some are excluded."""
        most = self.most
        if most is None or excluded * most >= _CERTAIN:
            return None
        return below_one(most / (1 - excluded * most))


def least_rows(policy: Policy) -> int:
    """Return how many rows every class has at least."""
    return max(policy.k, policy.l)


def found_among(policy: Policy, persons: NDArray[np.int32] | None) -> float | None:
    """Return how likely the row of a person is found in a class, at most; None if it is certain.

    persons: whose each row of the source is, None where each is another's.
    Whose class has more rows of them than of the others is found more often than by chance of k.
    """
    several = persons is not None and bool((np.bincount(persons) > 1).any())
    return None if several else one_in(least_rows(policy))


def one_in(rows: int) -> float | None:
    """Return how likely the right one of so many rows is found, None if it may be certain."""
    return 1 / rows if rows > 1 else None


def limits(
    policy: Policy, column: str, whole: NDArray[np.float64], domain: SensitiveDomain | None
) -> Limits:
    """Return what the models of a policy let the values of a sensitive column be.

    whole: (m,) the share of each code in the relation; domain: what the codes stand for,
    which is asked where values have distances.
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
    """Return the greatest share of a value among persons of the same classes of several releases.

    And how many values they have at least; both by what is asked of them by all of the policies,
    where the releases were judged together. Models that compare with a whole are asked of classes
    alone. whole: (m,) how often each value is in one of the relations.
    """
    likeliest, distinct = 0.0, len(whole)
    for policy in policies:
        own = tuple(s for s in policy.models if not MODELS[s.name].of_whole)
        found = limits(replace(policy, models=own), column, whole / max(whole.sum(), 1), None)
        likeliest = max(likeliest, 1.0 if found.most is None else found.most)
        distinct = min(distinct, found.distinct)
    return below_one(likeliest), distinct


def _models(policy: Policy, column: str) -> Iterator[Model]:
    """Yield the models that are asked of a sensitive column."""
    names = [column]
    for spec in of_scope(policy.models, Scope.SENSITIVE):
        if column in sensitive_of(spec, names):
            yield model_of(spec)


def _greatest_share(model: Model, n_values: int) -> float:
    """Return the greatest share of a value in a class, as far as a model bounds that of any."""
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
    """Return the greatest share of a value, of so many at most, at an entropy or a greater one.

    Of all distributions in which one value has a share, that of which the others are as frequent as
    each other has the greatest entropy; this falls as the share grows beyond that of all being so.
    """
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
    """Return by how much a set of values may be more frequent than in the relation.

    What it has more was carried to it from other values, which are at least so far away.
    """
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
    """Return by how much each value may be more frequent than in the relation, as a factor."""
    if isinstance(model, DeltaDisclosure):
        return np.full(len(whole), math.exp(model.delta))
    factor = np.full(len(whole), model.beta)
    if model.kind == ENHANCED:
        factor = np.minimum(factor, -np.log(np.maximum(whole, 1e-300)))
    return np.asarray(1 + factor, np.float64)


def below_one(share: float) -> float | None:
    """Return a share, None if it is all."""
    return share if share < _CERTAIN else None
