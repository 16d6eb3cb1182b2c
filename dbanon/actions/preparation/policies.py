"""The policy of a table, as an action needs it in its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.errors import PolicyError
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


def validate_policy(session: Session, policy: Policy, info: TableInfo) -> None:
    """Raise PolicyError with everything in the policy that does not fit the table."""
    from dbanon.anonymization.registry import RECODINGS
    from dbanon.db.metadata import store
    from dbanon.formats.policy_validation import validate

    named = {rule.taxonomy for rule in policy.columns if rule.taxonomy is not None}
    known = store.load_taxonomies(session, named)
    validate(policy, info, taxonomies=known, recodings=RECODINGS)


def stored_policy(session: Session, info: TableInfo) -> Policy:
    """Return the policy of a table in an open session; raises PolicyError when there is none."""
    from dbanon.db.metadata import store

    policy = store.load_policy(session, info.name)
    if policy is None:
        raise PolicyError(
            f"{info.name} has no policy yet", hint=command("dbanon policy suggest", info.name)
        )
    return policy
