"""What cannot be done by anatomy, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.release import ReleaseKind
from dbanon.domain.text import command
from dbanon.formats.policy.anatomy import level

if TYPE_CHECKING:
    from dbanon.domain.policy import Policy
    from dbanon.request import Request


def require_bucketed(policy: Policy, request: Request) -> None:
    """Raise PolicyError when nothing says l, ConfigError for a live view."""
    if (level(policy) or 1) == 1:
        raise PolicyError(
            "neither the command nor the policy says l, and nothing else is promised by anatomy",
            hint="pass --l 2, or more",
        )
    if request.relation_kind is ReleaseKind.VIEW:
        raise ConfigError(
            "a live view cannot keep buckets: quasi-identifiers are published as they are, so that"
            " whoever sees one value go when one row goes knows whose it was",
            hint="publish it with --as table",
        )


def require_generalized(policy: Policy, *, what: str) -> None:
    """Raise ConfigError for what groups persons by their quasi-identifiers."""
    if policy.anatomy:
        raise ConfigError(
            f"{what} groups persons by their quasi-identifiers, and the policy of {policy.table}"
            " publishes these as they are, by anatomy",
            hint=f"take anatomy out of the policy, or: {command('dbanon publish', policy.table)}",
        )
