"""Acknowledged warnings: ``code: reason``, in a column's rule or at the top of the policy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dbanon.domain.caution import Code
from dbanon.formats.document_reader import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dbanon.domain.caution import Caution
    from dbanon.domain.policy import Policy


def flaws(entries: Iterable[str], *, of_column: bool) -> Iterator[str]:
    """Yield the errors in the list of a column, or in that of the policy."""
    codes = []
    for entry in entries:
        code, reason = _parts(entry)
        if code not in list(Code):
            codes_there = ", ".join(one for one in Code if one.of_column == of_column)
            near = did_you_mean(code, list(Code))
            yield f"names no warning that there is{near}; those that it may name are {codes_there}"
        elif not reason:
            yield f'gives no reason: "{code}: why"'
        elif Code(code).of_column != of_column:
            where = "the column that it is about" if Code(code).of_column else "the whole policy"
            yield f"{code} is allowed by allow of {where}"
        else:
            codes.append(code)
    for code, count in Counter(codes).items():
        if count > 1:
            yield f"allows {code} {count} times"


def is_allowed(caution: Caution, policy: Policy) -> bool:
    """Return True if the policy acknowledges a warning with a reason."""
    entries = policy.allow
    if caution.code.of_column:
        entries = next(rule.allow for rule in policy.columns if rule.column == caution.column)
    return caution.code in {code for code, reason in map(_parts, entries) if reason}


def _parts(entry: str) -> tuple[str, str]:
    code, _, reason = entry.partition(":")
    return code.strip(), reason.strip()
