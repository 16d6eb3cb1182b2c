"""From a table and its policy to groups: what plan, publish and refresh share."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, TypedDict, cast

from dbanon.domain.errors import (
    ConfigError,
    DriftError,
    PolicyError,
    TaxonomyError,
    Unsatisfiable,
)
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ModelSpec, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName, quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbanon.anonymize.pipeline import Outcome
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.stages import Stages
    from dbanon.domain.table import TableInfo


_LONGEST_NAME = 63
_PRIVATE = frozenset({"dbanon", "dbanon_data"})


class Options(TypedDict, total=False):
    """What a caller may ask for over the stored policy; what is left out keeps the policy's word.

    ``k``, ``l``, ``algorithm``, ``max_suppressed`` and ``block`` replace the policy's own, and
    each of ``params`` the policy's parameter of that name; another algorithm begins with its own
    defaults. ``effort`` and ``time_limit`` (seconds) are short for parameters that only some
    algorithms have. ``kind`` is ``table`` (a private copy behind a view; the default) or ``view``
    (the live source behind guards). Readers see ``schema.name``, by default ``anon`` and the
    table's name. ``grants`` names roles that may read it, PUBLIC included. The same data, options
    and ``seed`` give the same groups, unless time ran out.
    """

    k: int | None
    l: int | None
    algorithm: str | None
    effort: str | None
    time_limit: float | None
    params: Mapping[str, str | int | float | bool]
    block: int | None
    max_suppressed: float | None
    kind: ReleaseKind | str
    schema: str
    name: str | None
    grants: Sequence[str]
    seed: int


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one publication, complete."""

    k: int | None = None
    l: int | None = None
    algorithm: str | None = None
    params: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    block: int | None = None
    max_suppressed: float | None = None
    kind: ReleaseKind = ReleaseKind.TABLE
    schema: str = "anon"
    name: str | None = None
    grants: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def of(cls, options: Options) -> Request:
        """Complete what a caller gave, or what the ledger kept."""
        values: dict[str, Any] = {**options}
        values["kind"] = ReleaseKind(values.get("kind", ReleaseKind.TABLE))
        values["grants"] = tuple(values.get("grants", ()))
        short = {name: values.pop(name, None) for name in ("effort", "time_limit")}
        chosen = {name: value for name, value in short.items() if value is not None}
        values["params"] = {**values.get("params", {}), **chosen}
        return cls(**values)

    def view(self, table: TableName) -> TableName:
        """Return the relation that readers will see; raises ConfigError when it cannot be."""
        for name in (self.schema, self.name or table.name):
            size = len(name.encode(errors="replace"))
            surrogates = any("\ud800" <= character <= "\udfff" for character in name)
            if not 0 < size <= _LONGEST_NAME or "\x00" in name or surrogates:
                raise ConfigError(
                    f"{name!r} is not a name for PostgreSQL: 1 to {_LONGEST_NAME} bytes of text",
                    hint="publish under another --name or --schema",
                )
        if self.schema in _PRIVATE:
            raise ConfigError(
                f"{self.schema} holds what no reader may see", hint="publish in another --schema"
            )
        return TableName(self.schema, self.name or table.name)

    def over(self, policy: Policy) -> Policy:
        """Return the policy in force; raises PolicyError when an option is out of bounds."""
        from dbanon.formats import policies

        models = {model.name: model for model in policy.models}
        if self.k is not None:
            models[K_ANONYMITY] = ModelSpec(K_ANONYMITY, {"k": self.k})
        if self.l is not None:
            models[L_DIVERSITY] = ModelSpec(L_DIVERSITY, {"l": self.l})
        budget = self.max_suppressed
        in_force = replace(
            policy,
            models=tuple(models.values()),
            max_suppressed=policy.max_suppressed if budget is None else budget,
            **self._search(policy),
        )
        return policies.from_document(policies.to_document(in_force))

    def _search(self, policy: Policy) -> dict[str, Any]:
        """Return the algorithm in force, and its parameters and blocks."""
        from dbanon.anonymize.parameters import typed
        from dbanon.anonymize.pipeline import algorithm_named

        name = self.algorithm or policy.algorithm
        same = name == policy.algorithm
        params = {**(policy.params if same else {}), **self.params}
        inherited = policy.block if same else None
        return {
            "algorithm": name,
            "params": typed(name, algorithm_named(name), params),
            "block": inherited if self.block is None else self.block,
        }

    def options(self) -> Options:
        """Return what the ledger keeps, so that a refresh can ask for the same."""
        kept = asdict(self)
        for name in ("params", "block"):  # older ledgers lack them, and their digests still hold
            if not kept[name]:
                del kept[name]
        return cast("Options", kept)


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """A partition of the table's rows, with what is needed to publish it.

    ``source`` holds the keys and the sensitive columns.
    """

    info: TableInfo
    policy: Policy
    taxonomies: Mapping[str, int]
    source: SourceRows
    outcome: Outcome

    @property
    def recodings(self) -> tuple[tuple[str, str], ...]:
        """(column, recoding) of every quasi-identifier, in policy order."""
        return tuple((column.name, column.recoding) for column in self.outcome.values.columns)


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The rows of a table as algorithms see them, and the keys to find each again."""

    rows: SourceRows
    encoded: EncodedTable
    taxonomies: Mapping[str, int]


def prepare(session: Session, info: TableInfo, request: Request, stages: Stages) -> Prepared:
    """Read the table on the open transaction's snapshot and group its rows; writes nothing.

    Raises PolicyError, TaxonomyError, Unsatisfiable, and DriftError instead of the first two
    when a release of the table is served already.
    """
    from dbanon.anonymize.pipeline import make_algorithm, run

    policy = in_force(session, info, request)
    make_algorithm(policy, stages=stages)  # what is wrong with it is told before anything is read
    source = read_source(session, info, policy, stages)
    outcome = run(source.encoded, policy, seed=request.seed, stages=stages)
    return Prepared(
        info=info,
        policy=policy,
        taxonomies=source.taxonomies,
        source=source.rows,
        outcome=outcome,
    )


def in_force(session: Session, info: TableInfo, request: Request) -> Policy:
    """Return the stored policy under the request; raises PolicyError when nothing says k."""
    from dbanon.actions.policy import stored_policy

    policy = request.over(stored_policy(session, info))
    if policy.model(K_ANONYMITY) is None:
        raise PolicyError("neither the command nor the policy says k", hint="pass --k 5")
    return policy


def read_source(session: Session, info: TableInfo, policy: Policy, stages: Stages) -> Source:
    """Read and encode the table on the open transaction's snapshot."""
    from dbanon.anonymize.encode import encode
    from dbanon.db import store, transfer

    try:
        _require(session, policy, info)
        transfer.require_fit(session, info, policy)
        with stages("read"), _loading_kernels():
            source = transfer.read(session, info, policy)
        named = {rule.taxonomy for rule in policy.columns if rule.taxonomy is not None}
        taxonomies = store.load_taxonomies(session, named)
        with stages("encode"):
            kinds = {column.name: column.kind for column in info.columns}
            encoded = encode(source.columns, policy, kinds=kinds, taxonomies=taxonomies)
            source = transfer.without_quasi(source, policy)
    except (PolicyError, TaxonomyError) as error:
        if store.releases(session, table=info.name, served=True):
            raise DriftError(f"{error} (the served release stays)", hint=error.hint) from None
        raise
    return Source(source, encoded, {name: tree.version for name, tree in taxonomies.items()})


def _load_kernels() -> None:
    import pyarrow as pa

    import_module("dbanon.kernels.compile")
    pa.array([0])  # imports pandas if there is one, and so would the first use


@contextmanager
def _loading_kernels() -> Iterator[None]:
    """Import what comes next during the block, which mostly waits for the server."""
    loading = Thread(target=_load_kernels)
    loading.start()
    try:
        yield
    finally:
        loading.join()


def _require(session: Session, policy: Policy, info: TableInfo) -> None:
    from dbanon.actions.policy import validate_policy
    from dbanon.db import catalog

    validate_policy(session, policy, info)
    if policy.subject is None:
        return
    rows, subjects = catalog.count_subjects(session, info, policy.subject)
    if rows != subjects:
        raise Unsatisfiable(
            f"{info.name} has {rows:,} rows of {subjects:,} subjects"
            f" ({quote_identifier(policy.subject)}): k would count rows, not persons",
            hint="publish a table with one row a person",
        )


def fingerprint(session: Session, prepared_for: TableInfo, policy: Policy, request: Request) -> str:
    """Return a digest of all that a release depends on; equal means nothing changed."""
    import hashlib
    import json

    from dbanon.db import catalog, store
    from dbanon.formats import policies

    named = {rule.taxonomy for rule in policy.columns if rule.taxonomy is not None}
    versions = {name: t.version for name, t in store.load_taxonomies(session, named).items()}
    columns = [rule.column for rule in policy.columns if rule.role is not Role.IDENTIFIER]
    content = catalog.content_digest(
        session, prepared_for, sorted({*columns, *prepared_for.primary_key})
    )
    parts = [content, policies.to_document(policy), versions, request.options()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
