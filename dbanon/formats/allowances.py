"""What a policy allows though it is seldom meant: ``code: why``, each for one caution.

A caution about a column is allowed in the rule of that column, one about the policy beside its
other settings.
"""

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
    """Yield what is wrong with the list of a column, or with that of the policy."""
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
    """Whether the policy gives a reason for what it is cautioned of."""
    entries = policy.allow
    if caution.code.of_column:
        entries = next(rule.allow for rule in policy.columns if rule.column == caution.column)
    return caution.code in {code for code, reason in map(_parts, entries) if reason}


def _parts(entry: str) -> tuple[str, str]:
    code, _, reason = entry.partition(":")
    return code.strip(), reason.strip()
