"""What cannot be published block by block, said before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import FULL_DOMAIN, GLOBAL, Role
from dbanon.domain.table import quote_identifier
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.domain.policy import ColumnRule, ModelSpec, Policy
    from dbanon.domain.table import TableInfo

_ONE_PIECE = "leave out --executor and --rows-per-block, and it is grouped in one piece"


def require_divisible(policy: Policy, info: TableInfo) -> None:
    """Raise ConfigError naming what needs all rows of the table at once."""
    for found in _obstacles(policy, info):
        raise ConfigError(f"blocks of rows cannot be grouped apart: {found}", hint=_ONE_PIECE)


def refuse(what: str) -> ConfigError:
    """Return the error for something else that needs all rows at once."""
    return ConfigError(f"blocks of rows cannot be grouped apart: {what}", hint=_ONE_PIECE)


def _obstacles(policy: Policy, info: TableInfo) -> Iterator[str]:
    if not info.is_table:
        yield f"{info.name} is no table, and may have other rows each time that it is read"
    if info.foreign:
        yield f"{info.name} has foreign parts, which are not read on one snapshot"
    if policy.masking:
        yield "masking changes values by those of all rows"
    if policy.sample is not None:
        yield "a sample is drawn of all persons"
    if policy.rows_per_subject is not None:
        yield "rows_per_subject looks at all rows of a person"
    if policy.anatomy:
        yield "anatomy deals sensitive values to the buckets of the whole table"
    for rule in policy.with_role(Role.QUASI):
        yield from _of_column(rule)
    for spec in policy.models:
        yield from _of_model(spec, policy)


def _of_column(rule: ColumnRule) -> Iterator[str]:
    name = quote_identifier(rule.column)
    if rule.keep:
        yield f"the rows of each value of {name} are grouped apart already (keep)"
    if rule.recoding in {GLOBAL, FULL_DOMAIN}:
        yield f"recoding {rule.recoding!r} of {name} publishes one grid for all classes"
    if rule.restore_variance:
        yield f"restore_variance of {name} takes the variance of all rows"


def _of_model(spec: ModelSpec, policy: Policy) -> Iterator[str]:
    model = MODELS.get(spec.name)
    if model is None:
        return  # which is refused by its name later
    if model.scope is Scope.LINKS:
        yield f"{title(spec)} looks at how columns occur together in all rows"
    elif model.scope is Scope.POPULATION:
        yield f"{title(spec)} counts a population"
    elif model.is_around:
        yield f"{title(spec)} compares a class with all classes around it"
    elif not model.is_monotone:
        yield f"{title(spec)} may not hold of a class that has rows of several blocks"
    elif model.of_whole and policy.max_suppressed > 0.0:
        yield (
            f"{title(spec)} compares with all rows that are shown, and with max_suppressed nobody"
            " knows them before the last block"
        )
