"""Registry of everything but models that a policy chooses by name. Tests cover each entry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from dbanon.anonymization.interfaces import LISTENER, Algorithm, listens, typed
from dbanon.anonymization.loss import metrics
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
    OF_STRUCTURE,
    PREFIX,
    MaskingStep,
    Policy,
    Role,
    Scalar,
)
from dbanon.domain.table import quote_identifier
from dbanon.formats.document_reader import did_you_mean
from dbanon.formats.policy_validation import recoding_problems

if TYPE_CHECKING:
    from dbanon.domain.assignment import EncodedColumn, Recoding
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Masking


class _Imported(Mapping[str, Any]):
    """Names of classes in modules below this package, each imported when it is looked up."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = places

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as the annotation of the mapping
        module, _, attribute = self.places[name].partition(":")
        return getattr(import_module(f"dbanon.anonymization.{module}"), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


ALGORITHMS: Mapping[str, Callable[..., Algorithm]] = _Imported(
    {
        "auto": "auto.algorithm:Auto",
        "mondrian": "algorithms.partitioning.mondrian:Mondrian",
        "mondrian-relaxed": "algorithms.partitioning.mondrian:RelaxedMondrian",
        "mdav": "algorithms.microaggregation.microaggregation:Mdav",
        "forest": "algorithms.approximation.forest:Forest",
        "matching": "algorithms.approximation.forest:Matching",
        "two-factor": "algorithms.approximation.forest:TwoFactor",
        "gather": "algorithms.approximation.gather:Gather",
        "gather-outliers": "algorithms.approximation.gather:GatherOutliers",
        "cellular": "algorithms.approximation.gather:Cellular",
        "full-domain": "algorithms.lattice.full_domain:FullDomain",
        "incognito": "algorithms.lattice.full_domain:Incognito",
        "samarati": "algorithms.lattice.full_domain:Samarati",
        "optimal-lattice": "algorithms.lattice.full_domain:OptimalLattice",
        "datafly": "algorithms.lattice.full_domain:Datafly",
        "projection": "algorithms.microaggregation.microaggregation:Projection",
        "univariate": "algorithms.microaggregation.microaggregation:Univariate",
        "k-means": "algorithms.clustering.partitional:KMeans",
        "k-medoids": "algorithms.clustering.partitional:KMedoids",
        "clarans": "algorithms.clustering.partitional:Clarans",
        "agglomerative": "algorithms.clustering.hierarchical:Agglomerative",
        "divisive": "algorithms.clustering.hierarchical:Divisive",
        "dbscan": "algorithms.clustering.density:Dbscan",
        "optics": "algorithms.clustering.density:Optics",
        "denclue": "algorithms.clustering.density:Denclue",
        "birch": "algorithms.clustering.hierarchical:Birch",
        "rock": "algorithms.clustering.hierarchical:Rock",
        "chameleon": "algorithms.clustering.hierarchical:Chameleon",
        "k-member": "algorithms.clustering.growth:KMember",
        "bottom-up": "algorithms.partitioning.mondrian:BottomUp",
        "top-down": "algorithms.partitioning.mondrian:TopDown",
        "nearest-neighbour": "algorithms.clustering.growth:NearestNeighbour",
        "one-pass-k-means": "algorithms.clustering.partitional:OnePassKMeans",
        "v-mdav": "algorithms.microaggregation.microaggregation:VMdav",
        "microaggregation": "algorithms.microaggregation.microaggregation:Microaggregation",
    }
)

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

MASKING: Mapping[str, Callable[..., Masking]] = _Imported(
    {
        "top-coding": "masking.noise:TopCoding",
        "bottom-coding": "masking.noise:BottomCoding",
        "rounding": "masking.noise:Rounding",
        "discretization": "masking.noise:Discretization",
        "rare-to-other": "masking.categories:RareToOther",
        "local-suppression": "masking.categories:LocalSuppression",
        "noise": "masking.noise:Noise",
        "correlated-noise": "masking.noise:CorrelatedNoise",
        "kim": "masking.noise:Kim",
        "sullivan": "masking.noise:Sullivan",
        "individual-ranking": "masking.microaggregation:IndividualRanking",
        "microaggregation": "masking.microaggregation:Microaggregation",
        "rank-swapping": "masking.categories:RankSwapping",
        "swapping": "masking.categories:Swapping",
        "permutation": "masking.categories:Permutation",
        "pram": "masking.categories:Pram",
    }
)

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
    **{f"il{i}": metrics.of_statistics(attrgetter(f"il{i}")) for i in range(1, 6)},
    "il-overall": metrics.of_statistics(lambda loss: loss.overall),
    "il1s": metrics.il1s,
}


def recoding_named(column: EncodedColumn) -> str:
    """Return the recoding that the rule of a column names, else that of its structure."""
    default = "mode" if column.rule.keep else OF_STRUCTURE[column.structure]
    return column.rule.recoding or default  # kept: all rows of the class have the same value


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
        msg = f"{policy.algorithm} divides tables of any size without this option"
        raise PolicyError(msg, hint="leave out --block")
    return typed(policy.algorithm, factory, policy.params)


def algorithm_named(name: str) -> Callable[..., Algorithm]:
    """Return the algorithm of that name; raises PolicyError with the choices."""
    if name not in ALGORITHMS:
        raise unknown("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]


def recoding_of(column: EncodedColumn) -> str:
    """Return the column's recoding by name; raises PolicyError if it does not fit the column."""
    name = recoding_named(column)
    if name not in RECODINGS:
        raise unknown("recoding", name, RECODINGS)
    if problem := misfit(name, column):
        fitting = [other for other in RECODINGS if misfit(other, column) is None]
        msg = f"column {quote_identifier(column.name)}: {problem}"
        raise PolicyError(msg, hint=f"choose one of {', '.join(fitting)}")
    return name


def misfit(recoding: str, column: EncodedColumn) -> str | None:
    """Return the reason why a recoding cannot publish a column, None if it can."""
    rule, kind = replace(column.rule, recoding=recoding), column.kind
    problems = recoding_problems(rule, kind, column.structure, recodings=RECODINGS, named=kind)
    return next(problems, None)


def unknown(what: str, name: str, choices: Collection[str]) -> PolicyError:
    """Return the error for a name that is not among the choices."""
    return PolicyError(
        f"there is no {what} {name!r}{did_you_mean(name, choices)}",
        hint=f"choose one of {', '.join(choices)}",
    )
