"""Registry of privacy models by name. Tests, proofs and options cover each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dbanon.domain.errors import PolicyError
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ModelSpec, Value
from dbanon.models.anonymity.delta_presence import DeltaPresence
from dbanon.models.anonymity.k_anonymity import KAnonymity
from dbanon.models.anonymity.k_map import KMap
from dbanon.models.anonymity.x_y_anonymity import XYAnonymity
from dbanon.models.base import COLUMNS, MULTI, STRICT, Model, Scope
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
    from collections.abc import Callable, Iterable, Iterator, Mapping


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


SHORT: Mapping[str, str] = {model.limit: name for name, model in MODELS.items() if model.is_short}
"""The parameters that stand for a model on their own."""


def arguments(spec: ModelSpec) -> dict[str, Value]:
    """Return a model's own parameters with the defaults filled in."""
    known = MODELS[spec.name].parameters()
    filled = {name: spec.params.get(name, p.default) for name, p in known.items()}
    return {name: value for name, value in filled.items() if value is not None}


def model_of(spec: ModelSpec) -> Model:
    """Return the model of a valid specification."""
    return cast("Callable[..., Model]", MODELS[spec.name])(**arguments(spec))


def title(spec: ModelSpec) -> str:
    """Spell a model, for example ``entropy 3-diversity``."""
    return str(model_of(spec))


def texts(spec: ModelSpec, parameter: str) -> tuple[str, ...]:
    """Return the texts that a parameter lists, none if omitted."""
    given = spec.params.get(parameter, ())
    return given if isinstance(given, tuple) else ()


def is_plain(spec: ModelSpec) -> bool:
    """Return True for k rows, or l distinct values of every sensitive column."""
    return spec.name in {K_ANONYMITY, L_DIVERSITY} and len(spec.params) == 1


def is_strict(spec: ModelSpec) -> bool:
    """Return True if the other sensitive columns join the quasi-identifiers."""
    return spec.params.get(MULTI) == STRICT


def sensitive_of(spec: ModelSpec, sensitive: Iterable[str]) -> tuple[str, ...]:
    """Return the sensitive columns to which a model applies one by one, by default all."""
    if MODELS[spec.name].scope is not Scope.SENSITIVE:
        return ()
    return texts(spec, COLUMNS) or tuple(sensitive)


def of_scope(models: Iterable[ModelSpec], scope: Scope) -> tuple[ModelSpec, ...]:
    """Return the models of a scope; unknown names have none."""
    return tuple(s for s in models if s.name in MODELS and MODELS[s.name].scope is scope)


def problems(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """Yield (parameter, problem) for a model that exists."""
    model = MODELS[spec.name]
    accepted = model.accepted()
    for name, value in spec.params.items():
        if name not in accepted:
            yield name, f"unknown key; {spec.name} takes {', '.join(accepted)}"
        elif found := accepted[name].problem(value):
            yield name, found
    for name, parameter in accepted.items():
        if parameter.default is None and name not in spec.params:
            yield name, "is missing"
    yield from model.contradictions(spec.params)


def require_valid(spec: ModelSpec) -> None:
    """Raise PolicyError for the first problem of a model's parameters."""
    for name, text in problems(spec):
        msg = f"{spec.name}: {name} {text}"
        raise PolicyError(msg, hint=f"{spec.name} takes {', '.join(MODELS[spec.name].accepted())}")
