"""Registry of everything but models that a policy chooses by name. Tests cover each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dbanon.anonymization.algorithms.approximation.forest import Forest, Matching, TwoFactor
from dbanon.anonymization.algorithms.approximation.gather import Cellular, Gather, GatherOutliers
from dbanon.anonymization.algorithms.clustering.density import Dbscan, Denclue, Optics
from dbanon.anonymization.algorithms.clustering.growth import KMember, NearestNeighbour
from dbanon.anonymization.algorithms.clustering.hierarchical import (
    Agglomerative,
    Birch,
    Chameleon,
    Divisive,
    Rock,
)
from dbanon.anonymization.algorithms.clustering.partitional import (
    Clarans,
    KMeans,
    KMedoids,
    OnePassKMeans,
)
from dbanon.anonymization.algorithms.lattice.full_domain import (
    Datafly,
    FullDomain,
    Incognito,
    OptimalLattice,
    Samarati,
)
from dbanon.anonymization.algorithms.microaggregation.microaggregation import (
    Mdav,
    Microaggregation,
    Projection,
    Univariate,
    VMdav,
)
from dbanon.anonymization.algorithms.partitioning.mondrian import (
    BottomUp,
    Mondrian,
    RelaxedMondrian,
    TopDown,
)
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import LISTENER, listens, typed
from dbanon.anonymization.loss import metrics
from dbanon.anonymization.masking.categories import (
    LocalSuppression,
    Permutation,
    Pram,
    RankSwapping,
    RareToOther,
    Swapping,
)
from dbanon.anonymization.masking.microaggregation import IndividualRanking
from dbanon.anonymization.masking.microaggregation import Microaggregation as MaskingByGroups
from dbanon.anonymization.masking.noise import (
    BottomCoding,
    CorrelatedNoise,
    Discretization,
    Kim,
    Noise,
    Rounding,
    Sullivan,
    TopCoding,
)
from dbanon.anonymization.recodings.central import Mean, Median, Midpoint, Mode
from dbanon.anonymization.recodings.interval import DatePart, Global, Interval, IntervalText
from dbanon.anonymization.recodings.interval import FullDomain as OneLevel
from dbanon.anonymization.recodings.label import CellSuppression, Label, Suppress, ValueSet
from dbanon.domain import errors
from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import (
    BOUNDS,
    CENTER,
    DATE_PART,
    FULL_DOMAIN,
    GLOBAL,
    OF_CELLS,
    PREFIX,
    SNAPPED,
    Role,
)
from dbanon.domain.table import Structure, quote_identifier
from dbanon.formats.document_reader import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from dbanon.anonymization.interfaces import Algorithm, Masking, Recoding
    from dbanon.domain.assignment import EncodedColumn
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import MaskingStep, Policy, Scalar

ALGORITHMS: Mapping[str, Callable[..., Algorithm]] = {
    "auto": Auto,
    "mondrian": Mondrian,
    "mondrian-relaxed": RelaxedMondrian,
    "mdav": Mdav,
    "forest": Forest,
    "matching": Matching,
    "two-factor": TwoFactor,
    "gather": Gather,
    "gather-outliers": GatherOutliers,
    "cellular": Cellular,
    "full-domain": FullDomain,
    "incognito": Incognito,
    "samarati": Samarati,
    "optimal-lattice": OptimalLattice,
    "datafly": Datafly,
    "projection": Projection,
    "univariate": Univariate,
    "k-means": KMeans,
    "k-medoids": KMedoids,
    "clarans": Clarans,
    "agglomerative": Agglomerative,
    "divisive": Divisive,
    "dbscan": Dbscan,
    "optics": Optics,
    "denclue": Denclue,
    "birch": Birch,
    "rock": Rock,
    "chameleon": Chameleon,
    "k-member": KMember,
    "bottom-up": BottomUp,
    "top-down": TopDown,
    "nearest-neighbour": NearestNeighbour,
    "one-pass-k-means": OnePassKMeans,
    "v-mdav": VMdav,
    "microaggregation": Microaggregation,
}

RECODINGS: Mapping[str, Recoding] = {
    "interval": Interval(),
    BOUNDS: Interval(BOUNDS),
    CENTER: Interval(CENTER),
    "interval-text": IntervalText(),
    DATE_PART: DatePart(),
    "label": Label(),
    PREFIX: Label(PREFIX),
    GLOBAL: Global(),
    FULL_DOMAIN: OneLevel(),
    "set": ValueSet(),
    "mean": Mean(),
    "midpoint": Midpoint(),
    "median": Median(),
    "mode": Mode(),
    "cell-suppression": CellSuppression(),
    "suppress": Suppress(),
}

MASKING: Mapping[str, Callable[..., Masking]] = {
    "top-coding": TopCoding,
    "bottom-coding": BottomCoding,
    "rounding": Rounding,
    "discretization": Discretization,
    "rare-to-other": RareToOther,
    "local-suppression": LocalSuppression,
    "noise": Noise,
    "correlated-noise": CorrelatedNoise,
    "kim": Kim,
    "sullivan": Sullivan,
    "individual-ranking": IndividualRanking,
    "microaggregation": MaskingByGroups,
    "rank-swapping": RankSwapping,
    "swapping": Swapping,
    "permutation": Permutation,
    "pram": Pram,
}

METRICS: Mapping[str, metrics.Metric] = {
    "il": metrics.information_loss,
    "iloss": metrics.iloss,
    "discernibility": metrics.discernibility,
    "c-avg": metrics.average_class_size,
    "c-avg-normalized": metrics.normalized_average_class_size,
    "cm": metrics.classification,
    "igpl": metrics.gain_per_privacy_loss,
    "suppressed": metrics.suppressed,
    "suppressed-cells": metrics.suppressed_cells,
    "md": metrics.minimal_distortion,
    "prec": metrics.precision,
    "sse-ratio": metrics.sse_ratio,
    "max-radius": metrics.max_radius,
    "size-times-radius": metrics.size_times_radius,
    "il1": metrics.il1,
    "il2": metrics.il2,
    "il3": metrics.il3,
    "il4": metrics.il4,
    "il5": metrics.il5,
    "il-overall": metrics.il_overall,
    "il1s": metrics.il1s,
}


_DEFAULT_RECODINGS = {
    Structure.LINE: "interval",
    Structure.ORDER: "interval-text",
    Structure.TREE: "label",
}


def default_recoding(column: EncodedColumn) -> str:
    """Return the recoding of a column whose rule names none."""
    if column.rule.keep:
        return "mode"  # all rows of the class have the same value
    return _DEFAULT_RECODINGS[column.structure]


def make_masking(step: MaskingStep) -> Masking:
    """Return the masking method of a step; PolicyError for an unknown method or parameter."""
    if step.method not in MASKING:
        msg = f"there is no masking method {step.method!r}"
        raise PolicyError(msg, hint=f"choose one of {', '.join(MASKING)}")
    factory = MASKING[step.method]
    return factory(**typed(step.method, factory, step.params))


def masks_among_rows(policy: Policy) -> bool:
    """Return True if a value is masked before grouping, depending on other rows."""
    methods = [make_masking(step) for step in policy.masking]
    return any(method.whole and not method.within_class for method in methods)


def masked_together(step: MaskingStep) -> list[tuple[str, ...]]:
    """Return the columns of a step, grouped as they are masked."""
    return [step.columns] if make_masking(step).joint else [(name,) for name in step.columns]


class Masked(NamedTuple):
    """How a step masks a column: within other columns, and together with others."""

    method: str
    params: Mapping[str, str | int | float | bool]
    within: tuple[str, ...]
    together: tuple[str, ...]


def masking_of(policy: Policy, column: str) -> list[Masked]:
    """Return the masking steps of a column, in order."""
    return [
        Masked(step.method, step.params, step.within, together)
        for step in policy.masked(column)
        for together in masked_together(step)
        if column in together
    ]


def masked_by(policy: Policy, column: str) -> list[str]:
    """Return the columns that affect the masking of a column and whose values may stay."""
    stay = {rule.column for rule in policy.columns if rule.role.stays}
    steps = masking_of(policy, column)
    used = {name for one in steps for name in (*one.within, *one.together)}
    return sorted(used & stay - {column})


def values_stay(policy: Policy, names: Iterable[str]) -> bool:
    """Return True if a release of earlier classes keeps published values of one of the columns."""
    return not {rule.column for rule in policy.with_role(Role.SENSITIVE)}.isdisjoint(names)


def solvable_columns(policy: Policy) -> dict[str, str]:
    """Return the columns published by row whose masking is ``solvable``, with the method."""
    rules = [*policy.with_role(Role.INSENSITIVE), *policy.with_role(Role.SENSITIVE)]
    return {
        rule.column: step.method
        for rule in rules
        for step in policy.masked(rule.column)
        if make_masking(step).solvable
    }


def within_classes(policy: Policy) -> bool:
    """Return True if some values are masked within classes."""
    return any(make_masking(step).within_class for step in policy.masking)


def make_algorithm(policy: Policy, *, stages: Stages) -> Algorithm:
    """Return the policy's algorithm with its parameters, and ``stages`` if it reports progress.

    Raises what ``parameters_of`` and ``require_installed`` do.
    """
    require_installed(policy)
    factory, chosen = algorithm_named(policy.algorithm), parameters_of(policy)
    return factory(**chosen, **{LISTENER: stages}) if listens(factory) else factory(**chosen)


def require_installed(policy: Policy) -> None:
    """Raise ConfigError when a library that the policy's algorithm needs is missing."""
    if library := getattr(algorithm_named(policy.algorithm), "NEEDS", None):
        errors.require_library(library, what=f"the algorithm {policy.algorithm}")


def parameters_of(policy: Policy) -> dict[str, Scalar]:
    """Return the parameters of the policy's algorithm in the types of its fields.

    Raises PolicyError naming the choices for an algorithm that there is not, and for parameters or
    blocks that it does not take.
    """
    factory = algorithm_named(policy.algorithm)
    if policy.block is not None and listens(factory):
        msg = f"{policy.algorithm} takes a table of any size and divides it by itself"
        raise PolicyError(msg, hint="leave out --block")
    return typed(policy.algorithm, factory, policy.params)


def algorithm_named(name: str) -> Callable[..., Algorithm]:
    """Return the algorithm of that name; raises PolicyError with the choices."""
    if name not in ALGORITHMS:
        raise unknown("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def recoding_of(column: EncodedColumn) -> str:
    """Return the column's recoding by name; raises PolicyError if it does not fit the column."""
    name = column.rule.recoding or default_recoding(column)
    if name not in RECODINGS:
        raise unknown("recoding", name, RECODINGS)
    if not accepts(name, column):
        fitting = [other for other in RECODINGS if accepts(other, column)]
        msg = f"recoding {name!r} cannot publish column {quote_identifier(column.name)}"
        raise PolicyError(msg, hint=f"choose one of {', '.join(fitting)}")
    if column.has_floor and name not in OF_CELLS:
        msg = f"recoding {name!r} publishes single values, and {quote_identifier(column.name)}"
        hint = f"choose one of {', '.join(sorted(OF_CELLS))}, or leave the floor out"
        raise PolicyError(f"{msg} has a floor", hint=hint)
    return name


def accepts(recoding: str, column: EncodedColumn) -> bool:
    """Return True if a recoding can publish the structure, kind and rule of a column."""
    if recoding == DATE_PART and not column.kind.is_moment:
        return False
    if recoding == GLOBAL and column.taxonomy is not None and column.kind.is_ordered:
        return False  # published as a range, and a node is none
    if recoding == CENTER and (column.rule.top, column.rule.bottom) != (None, None):
        return False  # an open cell has none
    if column.rule.snap is not None and recoding not in SNAPPED:
        return False
    return column.structure in RECODINGS[recoding].accepts


def unknown(what: str, name: str, choices: Collection[str]) -> PolicyError:
    """Return the error for a name that is not among the choices."""
    return PolicyError(
        f"there is no {what} {name!r}{did_you_mean(name, choices)}",
        hint=f"choose one of {', '.join(choices)}",
    )
