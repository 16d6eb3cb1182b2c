"""The column of a policy in which readers find what stands for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.table import LONGEST_NAME, SYSTEM_COLUMNS, is_name, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


def problems(policy: Policy, info: TableInfo) -> Iterator[str]:
    """Yield what keeps persons from being published by pseudonyms, if the policy asks for them."""
    name = policy.pseudonym
    if name is None:
        return
    column = f"pseudonym {quote_identifier(name)}"
    taken = {column.name for column in info.columns}
    taken |= {shown for rule in policy.columns for shown in rule.published_as}
    if name in taken:
        yield f"{column} is a column that there is already: choose another name"
    elif not is_name(name) or name in SYSTEM_COLUMNS:
        yield f"{column} is no name for a column: 1 to {LONGEST_NAME} bytes of text"
    if policy.anatomy:
        yield f"{column} would tell by two releases who was in which buckets: leave out anatomy"
    is_one_row = policy.subject is None or (policy.subject,) == info.primary_key
    if not is_one_row and policy.rows_per_subject is None:
        yield (
            f"{column} shows how many rows a person has, and whoever knows the number finds the"
            ' person: rows_per_subject = "group", or the most rows to publish of each'
        )
