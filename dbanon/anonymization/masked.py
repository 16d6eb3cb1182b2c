"""The masking methods that a policy names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.anonymization.parameters import typed
from dbanon.anonymization.registry import MASKING
from dbanon.domain.errors import PolicyError

if TYPE_CHECKING:
    from dbanon.anonymization.masking.interfaces import Masking
    from dbanon.domain.policy import MaskingStep, Policy


def make_masking(step: MaskingStep) -> Masking:
    """Return the method of a step; raises PolicyError for one or a parameter that there is not."""
    if step.method not in MASKING:
        msg = f"there is no masking method {step.method!r}"
        raise PolicyError(msg, hint=f"choose one of {', '.join(MASKING)}")
    factory = MASKING[step.method]
    return factory(**typed(step.method, factory, step.params))


def depends_on_all(policy: Policy) -> bool:
    """Whether a row that comes or goes may change what becomes of the values of others."""
    return any(make_masking(step).whole for step in policy.masking)


def within_classes(policy: Policy) -> bool:
    """Whether some values are masked within the classes."""
    return any(make_masking(step).within_class for step in policy.masking)
