"""Everything but models that can be chosen by name. Being listed here is being tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.anonymize import metrics
from dbanon.anonymize.algorithms.agglomerative import Agglomerative
from dbanon.anonymize.algorithms.auto import Auto
from dbanon.anonymize.algorithms.bottom_up import BottomUp
from dbanon.anonymize.algorithms.cellular import Cellular
from dbanon.anonymize.algorithms.density import Dbscan, Optics
from dbanon.anonymize.algorithms.divisive import Divisive
from dbanon.anonymize.algorithms.forest import Forest
from dbanon.anonymize.algorithms.full_domain import FullDomain
from dbanon.anonymize.algorithms.gather import Gather, GatherOutliers
from dbanon.anonymize.algorithms.incognito import Incognito
from dbanon.anonymize.algorithms.k_means import KMeans
from dbanon.anonymize.algorithms.k_medoids import KMedoids
from dbanon.anonymize.algorithms.k_member import KMember
from dbanon.anonymize.algorithms.matching import Matching
from dbanon.anonymize.algorithms.mdav import Mdav
from dbanon.anonymize.algorithms.microaggregation import Microaggregation
from dbanon.anonymize.algorithms.mondrian import Mondrian, RelaxedMondrian
from dbanon.anonymize.algorithms.nearest_neighbour import NearestNeighbour
from dbanon.anonymize.algorithms.one_pass_k_means import OnePassKMeans
from dbanon.anonymize.algorithms.optimal_lattice import OptimalLattice
from dbanon.anonymize.algorithms.projection import Projection, Univariate
from dbanon.anonymize.algorithms.samarati import Samarati
from dbanon.anonymize.algorithms.top_down import TopDown
from dbanon.anonymize.algorithms.two_factor import TwoFactor
from dbanon.anonymize.algorithms.v_mdav import VMdav
from dbanon.anonymize.masking.ranking import individual_ranking
from dbanon.anonymize.recodings.central import Mean, Median, Mode
from dbanon.anonymize.recodings.interval import Interval, IntervalText
from dbanon.anonymize.recodings.label import Label
from dbanon.anonymize.recodings.suppress import Suppress
from dbanon.anonymize.recodings.value_set import ValueSet
from dbanon.domain.table import Structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.anonymize.interfaces import Algorithm, Recoding
    from dbanon.domain.assignment import EncodedColumn

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
    "projection": Projection,
    "univariate": Univariate,
    "k-means": KMeans,
    "k-medoids": KMedoids,
    "agglomerative": Agglomerative,
    "divisive": Divisive,
    "dbscan": Dbscan,
    "optics": Optics,
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
    "interval-text": IntervalText(),
    "label": Label(),
    "set": ValueSet(),
    "mean": Mean(),
    "median": Median(),
    "mode": Mode(),
    "suppress": Suppress(),
}

MASKING: Mapping[str, Callable[..., NDArray[np.float64]]] = {
    "individual-ranking": individual_ranking,
}

METRICS: Mapping[str, metrics.Metric] = {
    "il": metrics.information_loss,
    "iloss": metrics.iloss,
    "discernibility": metrics.discernibility,
    "c-avg": metrics.average_class_size,
    "c-avg-normalized": metrics.normalized_average_class_size,
    "cm": metrics.classification,
    "suppressed": metrics.suppressed,
    "suppressed-cells": metrics.suppressed_cells,
    "sse-ratio": metrics.sse_ratio,
}


_DEFAULT_RECODINGS = {
    Structure.LINE: "interval",
    Structure.ORDER: "interval-text",
    Structure.TREE: "label",
}


def default_recoding(column: EncodedColumn) -> str:
    """Return the recoding of a column whose rule names none."""
    return _DEFAULT_RECODINGS[column.structure]
