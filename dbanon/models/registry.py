"""All privacy models by name. Being listed here is being tested, proved and offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY
from dbanon.models.alpha_k_anonymity import AlphaKAnonymity
from dbanon.models.beta_likeness import BetaLikeness
from dbanon.models.delta_disclosure import DeltaDisclosure
from dbanon.models.delta_presence import DeltaPresence
from dbanon.models.entropy_l_diversity import EntropyLDiversity
from dbanon.models.k_anonymity import KAnonymity
from dbanon.models.k_e_anonymity import KEAnonymity
from dbanon.models.k_map import KMap
from dbanon.models.l_diversity import LDiversity
from dbanon.models.m_uniqueness import MUniqueness
from dbanon.models.n_t_closeness import NTCloseness
from dbanon.models.npd_recursive_l_diversity import NpdRecursiveLDiversity
from dbanon.models.p_sensitivity import PSensitivity
from dbanon.models.pd_recursive_l_diversity import PdRecursiveLDiversity
from dbanon.models.probabilistic_l_diversity import ProbabilisticLDiversity
from dbanon.models.recursive_l_diversity import RecursiveLDiversity
from dbanon.models.t_closeness import TCloseness
from dbanon.models.x_y_anonymity import XYAnonymity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.models.base import Model

MODELS: Mapping[str, type[Model]] = {
    K_ANONYMITY: KAnonymity,
    L_DIVERSITY: LDiversity,
    "probabilistic-l-diversity": ProbabilisticLDiversity,
    "entropy-l-diversity": EntropyLDiversity,
    "recursive-l-diversity": RecursiveLDiversity,
    "pd-recursive-l-diversity": PdRecursiveLDiversity,
    "npd-recursive-l-diversity": NpdRecursiveLDiversity,
    "t-closeness": TCloseness,
    "n-t-closeness": NTCloseness,
    "alpha-k-anonymity": AlphaKAnonymity,
    "p-sensitivity": PSensitivity,
    "beta-likeness": BetaLikeness,
    "delta-disclosure": DeltaDisclosure,
    "k-e-anonymity": KEAnonymity,
    "m-uniqueness": MUniqueness,
    "x-y-anonymity": XYAnonymity,
    "k-map": KMap,
    "delta-presence": DeltaPresence,
}
