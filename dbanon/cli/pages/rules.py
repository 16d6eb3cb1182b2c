"""A policy in words, without a value that it names: readers of a page may not know these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli.notation import number, percent
from dbanon.cli.pages.figures import WORDS, Noted, Table
from dbanon.domain.policy import Role
from dbanon.domain.wording import RECODED, floor_in_words, method_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.report import Report

_ROLES = {
    Role.IDENTIFIER: "not published",
    Role.QUASI: "what others may know",
    Role.SENSITIVE: "what nobody should learn",
    Role.INSENSITIVE: "published as it is",
    Role.WEIGHT: "how many persons a row stands for",
}


def of_columns(report: Report) -> Table:
    """Return what becomes of each column, in the order of the policy."""
    heads = {"column": WORDS, "role": WORDS, "published as": WORDS, "type": WORDS}
    rows = (
        (
            rule.column,
            Noted(rule.role.value, _ROLES[rule.role]),
            _shown(rule, report.policy),
            ", ".join(_types(rule, report.columns)) or "-",
        )
        for rule in report.policy.columns
    )
    return Table("What becomes of each column", heads, tuple(rows))


def _types(rule: ColumnRule, types: Mapping[str, str]) -> Iterator[str]:
    return (types[name] for name in rule.published_as if name in types)


def _shown(rule: ColumnRule, policy: Policy) -> str:
    if not rule.role.is_published:
        return "left out"
    recoded = rule.role is Role.QUASI and not rule.keep and not policy.anatomy
    said = [_recoded(rule)] if recoded else ["as it is"]
    said += [text for text in floor_in_words(rule).split("; ") if text]
    if rule.taxonomy is not None:
        said.append(f"by the taxonomy {rule.taxonomy}")
    if rule.order is not None:
        said.append(f"{number(len(rule.order))} values in an order")
    if rule.pooled is not None:
        prefix = "prefix" if len(rule.pooled) == 1 else "prefixes"
        said.append(f"{number(len(rule.pooled))} {prefix} in one cell")
    if rule.weight != 1:
        said.append(f"its loss counts {rule.weight:g} times")
    said += [f"masked by {method_in_words(step)}" for step in policy.masked(rule.column)]
    return "; ".join(said)


def _recoded(rule: ColumnRule) -> str:
    if rule.recoding is None:
        return "recoded as its type has it"
    return RECODED.get(rule.recoding, rule.recoding)


def choices(policy: Policy) -> list[tuple[str, str]]:
    """Return everything that a policy says besides models and columns, as (what, in words)."""
    return list(_choices(policy))


def _choices(policy: Policy) -> Iterator[tuple[str, str]]:
    yield "name", policy.name
    params = ", ".join(f"{name} = {value}" for name, value in policy.params.items())
    yield "algorithm", f"{policy.algorithm} ({params})" if params else policy.algorithm
    if policy.block is not None:
        yield "blocks", f"about {number(policy.block)} rows"
    if policy.max_suppressed:
        yield "rows left out", f"{percent(policy.max_suppressed)} at most"
    yield from _persons(policy)
    if policy.where:
        chosen = dict.fromkeys(f"{one.column} {one.comparison}" for one in policy.where)
        yield "rows chosen by", ", ".join(_condition(text) for text in chosen)
    if policy.anatomy:
        yield "anatomy", "sensitive values of buckets, in a relation of their own"
    if policy.budget is not None:
        yield "budget of counts with noise", f"epsilon {policy.budget:g}"
    for allowed in policy.allow:
        yield "meant as it is", allowed
    for rule in policy.columns:
        for allowed in rule.allow:
            yield f"meant as it is, of {rule.column}", allowed


def _persons(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.subject is not None:
        yield "persons told apart by", policy.subject
    if policy.rows_per_subject is not None:
        yield "rows of a person", str(policy.rows_per_subject)
    if policy.sample is not None:
        yield "persons drawn", percent(policy.sample)
    if policy.population is not None:
        yield "population", str(policy.population)
    if policy.pseudonym is not None:
        yield "pseudonym", policy.pseudonym
    if policy.erase_within is not None:
        yield "who is gone is shown for", f"{policy.erase_within} at most"


def _condition(text: str) -> str:
    return text if text.endswith("null") else f"{text} ..."
