"""Registry of privacy models by name. Tests, proofs and options cover each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY
from dbanon.models.anonymity.delta_presence import DeltaPresence
from dbanon.models.anonymity.k_anonymity import KAnonymity
from dbanon.models.anonymity.k_map import KMap
from dbanon.models.anonymity.x_y_anonymity import XYAnonymity
from dbanon.models.closeness.beta_likeness import BetaLikeness
from dbanon.models.closeness.delta_disclosure import DeltaDisclosure
from dbanon.models.closeness.n_t_closeness import NTCloseness
from dbanon.models.closeness.t_closeness import TCloseness
from dbanon.models.diversity.alpha_k_anonymity import AlphaKAnonymity
from dbanon.models.diversity.entropy_l_diversity import EntropyLDiversity
from dbanon.models.diversity.k_e_anonymity import KEAnonymity
from dbanon.models.diversity.l_diversity import LDiversity
from dbanon.models.diversity.listed_alpha_k_anonymity import ListedAlphaKAnonymity
from dbanon.models.diversity.m_uniqueness import MUniqueness
from dbanon.models.diversity.npd_recursive_l_diversity import NpdRecursiveLDiversity
from dbanon.models.diversity.p_sensitivity import PSensitivity
from dbanon.models.diversity.pd_recursive_l_diversity import PdRecursiveLDiversity
from dbanon.models.diversity.probabilistic_l_diversity import ProbabilisticLDiversity
from dbanon.models.diversity.recursive_l_diversity import RecursiveLDiversity

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
    "listed-alpha-k-anonymity": ListedAlphaKAnonymity,
    "p-sensitivity": PSensitivity,
    "beta-likeness": BetaLikeness,
    "delta-disclosure": DeltaDisclosure,
    "k-e-anonymity": KEAnonymity,
    "m-uniqueness": MUniqueness,
    "x-y-anonymity": XYAnonymity,
    "k-map": KMap,
    "delta-presence": DeltaPresence,
}
