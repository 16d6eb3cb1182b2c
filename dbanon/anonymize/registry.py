"""Everything that can be chosen by name. Being listed here is being tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.anonymize import metrics
from dbanon.anonymize.algorithms.mdav import Mdav
from dbanon.anonymize.algorithms.microaggregation import Microaggregation
from dbanon.anonymize.algorithms.mondrian import Mondrian, RelaxedMondrian
from dbanon.anonymize.algorithms.v_mdav import VMdav
from dbanon.anonymize.models.k_anonymity import KAnonymity
from dbanon.anonymize.models.l_diversity import LDiversity
from dbanon.anonymize.recodings.central import Mean, Median, Mode
from dbanon.anonymize.recodings.interval import Interval, IntervalText
from dbanon.anonymize.recodings.label import Label
from dbanon.anonymize.recodings.suppress import Suppress
from dbanon.anonymize.recodings.value_set import ValueSet
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbanon.anonymize.interfaces import Algorithm, Model, Recoding
    from dbanon.domain.assignment import EncodedColumn

ALGORITHMS: Mapping[str, Callable[..., Algorithm]] = {
    "mondrian": Mondrian,
    "mondrian-relaxed": RelaxedMondrian,
    "mdav": Mdav,
    "v-mdav": VMdav,
    "microaggregation": Microaggregation,
}

MODELS: Mapping[str, Model] = {
    K_ANONYMITY: KAnonymity(),
    L_DIVERSITY: LDiversity(),
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

METRICS: Mapping[str, metrics.Metric] = {
    "il": metrics.information_loss,
    "discernibility": metrics.discernibility,
    "c-avg": metrics.average_class_size,
    "c-avg-normalized": metrics.normalized_average_class_size,
    "suppressed": metrics.suppressed,
    "sse-ratio": metrics.sse_ratio,
}


def default_recoding(column: EncodedColumn) -> str:
    """Return the recoding of a column whose rule names none."""
    return "interval" if column.taxonomy is None else "label"
