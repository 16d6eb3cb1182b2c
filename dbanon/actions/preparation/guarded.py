"""What the guards of a live view can keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import Role
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import command
from dbanon.models.registry import MODELS
from dbanon.models.specs import title

if TYPE_CHECKING:
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


def require_guarded(policy: Policy, info: TableInfo) -> None:
    """Raise ConfigError for what guards cannot keep, or only by counting the whole table.

    Whoever compares a class with all rows judges every class anew when any row changes, and hiding
    one changes what all others are compared with. That would be a scan, and a lock that lets one
    writer in at a time, for every statement. And the transition tables of PostgreSQL hold no value
    that is generated on reading, so that a guard would not see it change.
    """
    _require_lasting_rows(policy)
    for spec in policy.models:
        if MODELS[spec.name].of_whole:
            raise ConfigError(
                f"a live view cannot keep {title(spec)}: any write changes the whole that its"
                " classes are compared with",
                hint="publish it with --as table, and again with: "
                + command("dbanon refresh", policy.table),
            )
    watched = [
        rule.column for role in (Role.QUASI, Role.SENSITIVE) for rule in policy.with_role(role)
    ]
    for column in info.columns:
        if column.is_virtual and column.name in {*watched, policy.subject}:
            raise ConfigError(
                f"column {quote_identifier(column.name)} is generated on reading, and the guards of"
                " a live view would not see it change",
                hint="make it STORED, or publish with --as table",
            )


def _require_lasting_rows(policy: Policy) -> None:
    """Raise ConfigError for what decides which rows are published, and may change with them."""
    if policy.key:
        raise ConfigError(
            "a live view needs rows told apart at every moment, and the key of the policy is proved"
            " of those that were read",
            hint="leave key out of the policy if the table has a primary key, or publish with"
            " --as table",
        )
    if policy.where:
        raise ConfigError(
            "a live view cannot keep where: a row that no longer meets a condition would stay",
            hint="publish it with --as table",
        )
    if policy.masking:
        raise ConfigError(
            "a live view shows values as they are, and the policy masks some",
            hint="publish it with --as table",
        )
    if policy.pseudonym is not None:
        raise ConfigError(
            "a live view cannot keep pseudonyms: whoever sees one go when somebody leaves knows"
            " whose it was",
            hint="publish it with --as table",
        )
    if policy.sample is not None:
        raise ConfigError(
            "a live view cannot keep a sample: a row that is given to another person would stay",
            hint="publish it with --as table",
        )
    if policy.rows_per_subject not in {None, 1}:
        raise ConfigError(
            "a live view cannot keep rows_per_subject: when a row of a person goes, the person is"
            " no longer like the others of its class, and no guard would see that",
            hint="publish one row of each (--rows-per-subject 1), or with --as table",
        )
