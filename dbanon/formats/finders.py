"""The parts of a request, and how each feature is found in them, for ``formats.support``.

``TableRequest`` has all parts: a policy, a table and the given options. Single parts can be
searched before the rest is known; ``RowCounts``, ``UntrackedRows`` and a release afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from dbanon.domain.policy import (
    BUCKET,
    COUNT,
    K_ANONYMITY,
    ColumnRule,
    MaskingStep,
    ModelSpec,
    Policy,
    Role,
    diversity_level,
    of_buckets,
    unmoved,
)
from dbanon.domain.release import Release
from dbanon.domain.table import TableInfo, quote_identifier
from dbanon.domain.text import command
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS, is_strict, title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dbanon.domain.policy import Masking

    Found = Mapping[str, object]
    """What fills the placeholders of a reason."""


_OF_FORECAST = ["table", "refresh", "dsn", "owner", "allow_superuser", "json", "timings", "quiet"]


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request for one table; given: names of options; make: returns the method of a step.

    No field has a default, because a missing part would count as supported.
    """

    policy: Policy
    info: TableInfo
    given: frozenset[str]
    make: Callable[[MaskingStep], Masking]

    def methods(self) -> Iterator[Masking]:
        """Yield the method of each masking step."""
        yield from map(self.make, self.policy.masking)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The numbers of rows and persons of a table."""

    policy: Policy
    rows: int
    persons: int


@dataclass(frozen=True, slots=True)
class UntrackedRows:
    """A table or partition whose rows change other than by statements, with the reason."""

    part: str
    why: str


Options: TypeAlias = frozenset[str]
Part = TypeVar("Part", Options, TableInfo, Policy, TableRequest, RowCounts, UntrackedRows, Release)
Parts: TypeAlias = Options | TableInfo | Policy | TableRequest | RowCounts | UntrackedRows | Release
"""A request, or a part that is known before the rest or after."""


@dataclass(frozen=True, slots=True)
class Finder(Generic[Part]):
    """Finds a feature in one part of a request."""

    part: type[Part]
    find: Callable[[Part], Iterable[Found]]

    def __call__(self, request: Parts) -> Iterator[Found]:
        """Yield the values for the placeholders of a reason, once per occurrence."""
        parts: tuple[Parts, ...] = (request,)
        if isinstance(request, TableRequest):
            parts = (request, request.given, request.info, request.policy)
        elif isinstance(request, Release):
            parts = (request, request.policy)
        for part in parts:
            if isinstance(part, self.part):
                yield from self.find(part)


def known(request: Parts) -> Found:
    """Return the values for placeholders of any reason."""
    found: dict[str, object] = {}
    for part in (request, getattr(request, "policy", None), getattr(request, "info", None)):
        if isinstance(part, Policy):
            found["table"] = part.table
            found["publish"] = command("dbanon publish", part.table)
            found["refresh"] = command("dbanon refresh", part.table)
            for rule in part.columns:
                if rule.keep:
                    found["kept"] = quote_identifier(rule.column)
        elif isinstance(part, TableInfo):
            found["source"] = part.name
        elif isinstance(part, Release):
            found["relation"] = part.relation
            found["check"] = command("dbanon check", part.relation)
    return found


def given(**options: object) -> Options:
    """Return the names of the options that have a value."""
    return frozenset(name for name, value in options.items() if value not in (None, (), []))


def option(*names: str) -> Finder[Options]:
    """Return a finder of options, one result each."""
    flags = {name: {"grants": "grant"}.get(name, name.replace("_", "-")) for name in names}
    return Finder(
        frozenset, lambda given: ({"option": flag} for name, flag in flags.items() if name in given)
    )


def where(part: type[Part], test: Callable[[Part], object]) -> Finder[Part]:
    """Return a finder of a feature that is present or not."""
    return Finder(part, lambda request: ({} for _ in range(bool(test(request)))))


def policy(test: Callable[[Policy], object]) -> Finder[Policy]:
    """Return a finder of a feature of a policy."""
    return where(Policy, test)


def table(test: Callable[[TableInfo], object]) -> Finder[TableInfo]:
    """Return a finder of a feature of a table."""
    return where(TableInfo, test)


def keys(*names: str) -> Finder[Policy]:
    """Return a finder of keys that differ from their defaults, one result each."""
    defaults = {one.name: one.default for one in fields(Policy) if one.name in names}

    def find(policy: Policy) -> Iterator[Found]:
        for name, default in defaults.items():
            if getattr(policy, name) and getattr(policy, name) != default:
                yield {"key": name}

    return Finder(Policy, find)


def quasi(test: Callable[[ColumnRule, Policy], object]) -> Finder[Policy]:
    """Return a finder of quasi-identifiers, one result each."""

    def find(policy: Policy) -> Iterator[Found]:
        for rule in policy.with_role(Role.QUASI):
            if test(rule, policy):
                yield {"column": quote_identifier(rule.column), "recoding": rule.recoding}

    return Finder(Policy, find)


def models(test: Callable[[ModelSpec, Policy], object]) -> Finder[Policy]:
    """Return a finder of models; unknown names are refused elsewhere."""

    def find(policy: Policy) -> Iterator[Found]:
        for spec in policy.models:
            if spec.name in MODELS and test(spec, policy):
                yield {"model": title(spec), "name": spec.name}

    return Finder(Policy, find)


def beyond_blocks(spec: ModelSpec, policy: Policy) -> bool:
    """Return True if a model compares with all published rows, and some may be suppressed."""
    model = MODELS[spec.name]
    around = model.is_around or model.scope is not Scope.SENSITIVE
    return model.of_whole and not around and policy.max_suppressed > 0.0


def of_persons(request: TableRequest) -> Iterator[Found]:
    """Find the models that are proved for all rows of a person, if persons may have several."""
    for spec in () if request.policy.is_one_row(request.info) else request.policy.models:
        is_of_rows = is_strict(spec) or not MODELS[spec.name].of_persons
        if spec.name != K_ANONYMITY and is_of_rows:
            yield {"name": spec.name}


def foreign_leaf(info: TableInfo) -> Iterator[Found]:
    """Find the foreign partitions."""
    for part in info.leaves:
        if part.relkind != "r":
            yield {"part": part.name}


def virtual(request: TableRequest) -> Iterator[Found]:
    """Find the columns of the policy that are generated on reading."""
    policy = request.policy
    rules = (*policy.with_role(Role.QUASI), *policy.with_role(Role.SENSITIVE))
    watched = {*(rule.column for rule in rules), policy.subject}
    for column in request.info.columns:
        if column.is_virtual and column.name in watched:
            yield {"column": quote_identifier(column.name)}


def nullable_subject(request: TableRequest) -> Iterator[Found]:
    """Find a subject that may be NULL."""
    for column in request.info.columns:
        if column.name == request.policy.subject and column.nullable:
            yield {"column": quote_identifier(column.name)}


def by_rows(counted: RowCounts) -> Iterator[Found]:
    """Find the models with guards that count rows, if a person has several."""
    policy = counted.policy
    if counted.rows == counted.persons or policy.rows_per_subject == 1:
        return
    for spec in policy.models:
        if not MODELS[spec.name].guards_persons:
            yield {
                "rows": f"{counted.rows:,}",
                "persons": f"{counted.persons:,}",
                "subject": quote_identifier(policy.subject or ""),
                "model": title(spec),
            }


def more_than_l(policy: Policy) -> Iterator[Found]:
    """Find the models that buckets cannot promise."""
    for spec in of_buckets(policy).models:
        if diversity_level(spec) is None:
            yield {"name": spec.name}


def taken(policy: Policy) -> Iterator[Found]:
    """Find the published columns with names that anatomy adds."""
    for rule in policy.columns:
        taken = {BUCKET, COUNT} if rule.role is Role.SENSITIVE else {BUCKET}
        if rule.role.is_published and rule.column in taken:
            yield {"column": quote_identifier(rule.column)}


def coarser(rule: ColumnRule, _: Policy) -> bool:
    """Return True if a rule has more keys that move classes than role, weight and order."""
    exact = ColumnRule(rule.column, rule.role, weight=rule.weight, order=rule.order)
    return rule != unmoved(exact, rule)


def n_sensitive(policy: Policy) -> Iterator[Found]:
    """Find another number of sensitive columns than one."""
    number = len(policy.with_role(Role.SENSITIVE))
    if number != 1:
        yield {"number": number}


def pseudonym(policy: Policy) -> Iterator[Found]:
    """Find the pseudonyms."""
    for name in policy.linking:
        yield {"column": quote_identifier(name)}


def together(release: Release) -> Iterator[Found]:
    """Find the other tables of the dataset of a release."""
    if release.dataset:
        others = (table for table in release.dataset if table != str(release.table))
        yield {"others": " and ".join(others)}


def of_others(release: Release) -> Iterator[Found]:
    """Find the persons of a dataset, if their table is another one."""
    if release.dataset and release.dataset[0] != str(release.table):
        yield {"persons": release.dataset[0]}


def not_of_forecast(given: Options) -> bool:
    """Return True unless the options are a table and how to show the plan of its refresh."""
    return "table" not in given or bool(given.difference(_OF_FORECAST))
