"""The options of a publication, each declared once."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from enum import Enum, StrEnum, auto
from functools import partial, wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Concatenate, ParamSpec, TypeVar, cast, get_args, get_origin

from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import (
    DEFAULT_NAME,
    K_ANONYMITY,
    L_DIVERSITY,
    ModelSpec,
    Policy,
    Scalar,
    made,
    meanings_of,
    of_buckets,
)
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import LONGEST_NAME, TableInfo, TableName, is_name
from dbanon.formats.finders import TableRequest
from dbanon.models.registry import MODELS
from dbanon.settings import Settings

P = ParamSpec("P")
What = TypeVar("What")
Found = TypeVar("Found")

# Limits of the database: integer for k and l, bigint for seeds and releases.
LARGEST_COUNT = 2**31 - 1
LARGEST_NUMBER = 2**63 - 1

_PRIVATE = frozenset({"dbanon", "dbanon_data"})


class Panel(StrEnum):
    """The headings under which help lists options."""

    PRIVACY = "Privacy"
    SEARCH = "Search"
    OUTPUT = "Output relation"
    CONNECTION = "Connection"
    DISPLAY = "Display"


class Stored(Enum):
    """When the ledger stores an option of a release, under the name of its field."""

    NEVER = auto()
    IF_GIVEN = auto()
    """Older ledgers lack it, and their digests still hold."""
    ALWAYS = auto()


_PUBLISH = frozenset({"publish", "publish_dataset"})
_PLAN = frozenset({"plan", "plan_with_report"})
_COMPARE = frozenset({"compare"})
_ONE_TABLE = frozenset({"publish"})
_IF_GIVEN = Stored.IF_GIVEN
_PLANNED = _PUBLISH | _PLAN | {"plan_dataset"}
_ALL = _PLANNED | _COMPARE


@dataclass(frozen=True, slots=True)
class Option:
    """Declaration of a field of a request; its help is the field's entry in the docstring.

    panel: of the command line, None if only functions take it; flag: by default the name; stored:
    in the ledger; is_key: it replaces the policy's key of the same name; scope: the functions that
    take it; least, most, among: the values that the command line accepts.
    """

    panel: Panel | None = None
    stored: Stored = Stored.NEVER
    flag: str = ""
    help: str = ""
    is_key: bool = False
    scope: frozenset[str] = _ALL
    metavar: str | None = None
    envvar: str | None = None
    least: float | None = None
    most: float | None = None
    among: tuple[str, ...] = ()

    def keeps(self, value: object, kind: object) -> bool:
        """Return True if the ledger may hold a value of an option of that type."""
        if self.stored is Stored.NEVER or not _is_of(value, kind):
            return False
        if not isinstance(value, int | float):
            return True
        return (self.least or 0) <= value and (self.most is None or value <= self.most)


def _is_of(value: object, kind: object) -> bool:
    """Return True if a value from JSON has a type, or that of a generic alias."""
    origin, inside = get_origin(kind) or kind, get_args(kind)
    if origin is UnionType:
        named = [one for one in inside if one is ReleaseKind]  # no other text than its names
        return any(_is_of(value, one) for one in named or inside)
    if origin in {Sequence, tuple}:
        return isinstance(value, list) and all(_is_of(one, inside[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, dict)
    if origin is ReleaseKind:
        return value in [*ReleaseKind]
    return type(value) is origin or (origin is float and type(value) is int)


_EFFORTS = ("fast", "balanced", "best")
_privacy = partial(Option, Panel.PRIVACY)
_search = partial(Option, Panel.SEARCH)
_output = partial(Option, Panel.OUTPUT)
_release = partial(_output, Stored.ALWAYS, scope=_PLANNED)
_key = partial(_privacy, _IF_GIVEN, is_key=True)
_rows = partial(_search, metavar="ROWS", least=1, most=LARGEST_COUNT)


def _count(model: str, parameter: str) -> Option:
    """Return an option as a privacy model declares its parameter."""
    known = MODELS[model].parameters()[parameter]
    least, most = int(known.least), int(known.most)
    return _privacy(Stored.ALWAYS, metavar="N", least=least, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Options of a publication; they override the stored policy.

    policy: name of the policy
    draft: a policy to use in place of the stored one, a value or the path of a TOML file
    k: minimum rows per class
    l: minimum distinct sensitive values per class
    models: a further model, such as t-closeness:t=0.2
    population: population table, for k-map and delta-presence
    subject: column that identifies the person
    rows_per_subject: maximum rows per person, or group
    max_suppressed: maximum fraction of suppressed rows
    allow_foreign: read foreign tables, whose readers are unknown
    strict: treat warnings as errors
    new_series: start a new series of releases
    recipients_changed: the readers have not seen earlier releases
    series: join the series of this relation
    algorithm: auto, mondrian, mdav ...
    effort: effort of auto: fast, balanced or best
    time_limit: time limit of auto, such as 30s, 2m or 500ms
    params: a parameter of the algorithm
    block: split the rows of slow algorithms into blocks
    executor: processes or dask://HOST:PORT
    rows_per_block: group the table in blocks
    seed: seed of the search
    algorithms: algorithms that ``compare`` runs
    ks: values of k that ``compare`` runs
    kind: table (a private copy) or view (live)
    schema: release schema
    name: release name; by default the table's, or TABLE_POLICY
    grants: grant SELECT to this role
    keep_assignment: keep the class of each row, in private tables
    dry_run: publish and prove, then roll back
    dataset: linked tables to publish together, the table of persons first
    shown: digest of each stored policy that the steward saw, as an approval has it
    settings: connection to the database
    stages: receives the progress

    Each of ``models`` replaces the policy's model of that name. With a ``subject``, k counts
    persons. ``rows_per_subject = "group"`` groups persons by their number of rows. A block has
    about as many rows as ``block`` or ``rows_per_block`` (1,000,000 for processes and Dask).
    The same data, options and seed give the same classes, unless ``time_limit`` is set.

    Each of ``params`` replaces the policy's parameter of that name; another algorithm begins with
    its own defaults. ``effort`` and ``time_limit``, in seconds, are short for parameters that only
    some algorithms have; a request has them in its ``params``.
    """

    policy: Annotated[str, _privacy(_IF_GIVEN, metavar="NAME")] = DEFAULT_NAME
    draft: Annotated[str | Path | Policy | None, Option(scope=_PLAN | _COMPARE)] = None
    k: Annotated[int | None, _count(K_ANONYMITY, "k")] = None
    l: Annotated[int | None, _count(L_DIVERSITY, "l")] = None
    models: Annotated[
        Sequence[ModelSpec | Mapping[str, object]],
        _privacy(_IF_GIVEN, "--model", metavar="NAME:PARAM=VALUE"),
    ] = ()
    population: Annotated[str | None, _key(metavar="TABLE")] = None
    subject: Annotated[str | None, _key(metavar="COLUMN")] = None
    rows_per_subject: Annotated[int | str | None, _key(metavar="N")] = None
    max_suppressed: Annotated[
        float | None, _privacy(Stored.ALWAYS, is_key=True, metavar="SHARE", least=0.0, most=1.0)
    ] = None
    allow_foreign: Annotated[bool, _privacy(_IF_GIVEN)] = False
    strict: Annotated[bool, _privacy(scope=_PLANNED)] = False
    new_series: Annotated[bool, _privacy(scope=_PLANNED)] = False
    recipients_changed: Annotated[bool, _privacy(scope=_PLANNED)] = False
    series: Annotated[
        str | TableName | None, _privacy(scope=_ONE_TABLE | _PLAN, metavar="RELATION")
    ] = None
    algorithm: Annotated[str | None, _search(Stored.ALWAYS, scope=_PLANNED, metavar="NAME")] = None
    effort: Annotated[str | None, _search(metavar="LEVEL", among=_EFFORTS)] = None
    time_limit: Annotated[float | None, _search(metavar="TIME")] = None
    params: Annotated[Mapping[str, Scalar], _search(_IF_GIVEN, "--param", metavar="NAME=VALUE")] = (
        field(default_factory=dict)
    )
    block: Annotated[int | None, _rows(_IF_GIVEN, is_key=True)] = None
    executor: Annotated[str, _search(scope=_ONE_TABLE, metavar="NAME")] = "threads"
    rows_per_block: Annotated[int | None, _rows(scope=_ONE_TABLE)] = None
    seed: Annotated[int, _search(Stored.ALWAYS, metavar="N", least=0, most=LARGEST_NUMBER)] = 0
    algorithms: Annotated[Sequence[str], Option(scope=_COMPARE)] = ()
    ks: Annotated[Sequence[int], Option(scope=_COMPARE)] = ()
    kind: Annotated[ReleaseKind | str, _output(Stored.ALWAYS, "--as", metavar="KIND")] = (
        ReleaseKind.TABLE
    )
    schema: Annotated[str, _release(metavar="NAME", envvar="DBANON_SCHEMA")] = "anon"
    name: Annotated[str | None, _release(metavar="NAME")] = None
    grants: Annotated[Sequence[str], _release("--grant", metavar="ROLE")] = ()
    keep_assignment: Annotated[bool, _output(_IF_GIVEN, scope=_PLANNED)] = False
    dry_run: Annotated[bool, _output(scope=_PUBLISH)] = False
    dataset: Annotated[tuple[str, ...], Option(scope=frozenset(), stored=_IF_GIVEN)] = ()
    shown: Annotated[tuple[str, ...], Option(scope=frozenset())] = ()
    settings: Annotated[Settings | None, Option()] = None
    stages: Annotated[Stages | None, Option()] = None

    def __post_init__(self) -> None:
        """Normalize the values; raises PolicyError for an invalid model."""
        short = {"effort": self.effort, "time_limit": self.time_limit}
        chosen = {name: value for name, value in short.items() if value is not None}
        known: dict[str, object] = {
            "kind": ReleaseKind(self.kind),
            "grants": tuple(self.grants),
            "dataset": tuple(self.dataset),
            "models": _specs(self.models),
            "params": {**self.params, **chosen},
            **dict.fromkeys(short),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_ledger(cls, overrides: Mapping[str, object]) -> "Request":
        """Return the stored request of a release; raises ConfigError for unexpected options.

        Every publisher can write the ledger, so a row must not make other rows unreadable.
        """
        types = {one.name: get_args(one.type)[0] for one in fields(cls)}
        if not all(
            name in types and OPTIONS[name].keeps(value, types[name])
            for name, value in overrides.items()
        ):
            raise ConfigError(
                "the ledger has options of a release that dbanon never keeps there",
                hint="dbanon release list, and publish it again",
            )
        return made(cls, overrides)

    def to_ledger(self) -> dict[str, object]:
        """Return the options to store, so that a refresh can repeat the request."""
        stored: dict[str, object] = {}
        for one in fields(self):
            option, value = OPTIONS[one.name], getattr(self, one.name)
            given = option.stored is Stored.IF_GIVEN and self._is_given(one)
            if given or option.stored is Stored.ALWAYS:
                stored[one.name] = list(value) if isinstance(value, tuple) else value
        if self.models:
            from dbanon.formats import policies

            stored["models"] = policies.model_documents(self.specs)
        return stored | {"kind": self.relation_kind.value}

    @property
    def relation_kind(self) -> ReleaseKind:
        """The kind of the published relation: a private copy, or the live source."""
        return ReleaseKind(self.kind)

    @property
    def specs(self) -> tuple[ModelSpec, ...]:
        """The requested models beyond k and l."""
        return cast("tuple[ModelSpec, ...]", self.models)

    @property
    def joined(self) -> TableName | None:
        """The relation whose series the release joins, if one is named."""
        return TableName.parse(self.series) if isinstance(self.series, str) else self.series

    def view(self, table: TableName) -> TableName:
        """Return the relation to serve; raises ConfigError for an invalid or private name."""
        own = table.name if self.policy == DEFAULT_NAME else f"{table.name}_{self.policy}"
        relation = self.name or own
        for name in (self.schema, relation):
            if not is_name(name):
                raise ConfigError(
                    f"{name!r} is not a name for PostgreSQL: 1 to {LONGEST_NAME} bytes of text",
                    hint="publish under another --name or --schema",
                )
        if self.schema in _PRIVATE:
            raise ConfigError(
                f"{self.schema} holds what no reader may see", hint="publish in another --schema"
            )
        return TableName(self.schema, relation)

    @property
    def forgets(self) -> bool:
        """True unless the class of each row is kept, which a live view needs."""
        return not self.relation_kind.is_live and not self.keep_assignment

    @property
    def given(self) -> frozenset[str]:
        """The names of the options that differ from their defaults; a live view is ``view``."""
        names = {one.name for one in fields(self) if self._is_given(one)} - {"kind"}
        live = {"view"} if self.relation_kind.is_live else set[str]()
        return frozenset(names | live)

    def _is_given(self, one: "Field[object]") -> bool:
        value = getattr(self, one.name)
        return bool(value) and value != one.default

    def for_table(self, policy: Policy, info: TableInfo) -> TableRequest:
        """Return the request for a table, in the form that ``formats.support`` checks."""
        from dbanon.anonymization.registry import make_masking

        return TableRequest(policy, info, self.given, make=make_masking)

    def over(self, policy: Policy) -> Policy:
        """Return the policy in force; raises PolicyError if an option is out of bounds."""
        from dbanon.anonymization.registry import parameters_of
        from dbanon.formats import policies

        if self.algorithm and self.algorithm != policy.algorithm:
            policy = replace(policy, algorithm=self.algorithm, block=None, params={})
        policy = replace(policy, params={**policy.params, **self.params})
        given = {
            key: value
            for key, option in OPTIONS.items()
            if option.is_key and (value := getattr(self, key)) not in {None, ""}
        }
        policy = policies.changed(policy.with_models(*self._models()), given)
        return of_buckets(policies.changed(policy, {"params": parameters_of(policy)}))

    def changes(self, policy: Policy) -> bool:
        """Return True if an option puts another policy in force; raises as ``over``."""
        return self.over(policy) != Request().over(policy)

    def _models(self) -> tuple[ModelSpec, ...]:
        """Return the requested models; raises PolicyError for a model given twice."""
        counts = ((K_ANONYMITY, "k", self.k), (L_DIVERSITY, "l", self.l))
        plain = [ModelSpec(name, {key: n}) for name, key, n in counts if n is not None]
        asked = (*_specs(plain), *self.specs)
        for name, times in Counter(spec.name for spec in asked).items():
            if times > 1:
                msg = f"{name} is asked for {times} times, and only one of them could hold"
                raise PolicyError(msg, hint="ask for each model once")
        return asked


def _options() -> Iterator[tuple[str, Option]]:
    helps = meanings_of(Request)
    for one in fields(Request):
        known: Option = get_args(one.type)[1]
        flag = known.flag or f"--{one.name.replace('_', '-')}"
        said, _ = helps.get(one.name, ("", ""))  # without docstrings there is no help
        yield one.name, replace(known, flag=flag, help=said)


OPTIONS: Mapping[str, Option] = dict(_options())
"""Declaration of each field of a request."""


def spelled_out(
    action: Callable[[What, Request], Found], name: str, *, make: Callable[P, Request]
) -> Callable[Concatenate[What, P], Found]:
    """Return a function with that name and the fields of a request as arguments.

    action: fulfils a request for its first argument; make: the class of requests.
    """
    taken = inspect.signature(action)
    first = next(iter(taken.parameters.values()))
    signature = taken.replace(parameters=[first, *_scoped(name)])

    @wraps(action)
    def call(*what: object, **options: object) -> Found:
        given: dict[str, object] = dict(signature.bind(*what, **options).arguments)
        return action(cast("What", given.pop(first.name)), made(make, given))

    call.__name__ = call.__qualname__ = name
    vars(call)["__signature__"] = signature
    return cast("Callable[Concatenate[What, P], Found]", call)


def _scoped(name: str) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a function that takes the fields of a request."""
    for one in fields(Request):
        if name in OPTIONS[one.name].scope:
            annotation = re.sub(r"\b(\w+\.)+", "", inspect.formatannotation(get_args(one.type)[0]))
            default = {} if one.default is MISSING else one.default
            yield inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default.value if isinstance(default, Enum) else default,
                annotation=annotation,
            )


def _specs(given: Sequence[ModelSpec | Mapping[str, object]]) -> tuple[ModelSpec, ...]:
    from dbanon.formats import policies

    documents = [
        policies.model_documents([model])[0] if isinstance(model, ModelSpec) else model
        for model in given
    ]
    return policies.models_of(documents)
