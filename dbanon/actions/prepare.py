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
)
from dbanon.domain.models import HIERARCHICAL
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ModelSpec, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.anonymize.pipeline import Outcome
    from dbanon.anonymize.population import Population
    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.stages import Stages
    from dbanon.domain.table import TableInfo
    from dbanon.domain.taxonomy import Taxonomy


_LONGEST_NAME = 63
_PRIVATE = frozenset({"dbanon", "dbanon_data"})


class Options(TypedDict, total=False):
    """What a caller may ask for over the stored policy; what is left out keeps the policy's word.

    ``k``, ``l``, ``subject``, ``population``, ``algorithm``, ``max_suppressed`` and ``block``
    replace the policy's own, each of
    ``models`` the policy's model of that name, and each of ``params`` its parameter of that name;
    another algorithm begins with its own defaults. ``effort`` and ``time_limit`` (seconds) are
    short for parameters that only some algorithms have. ``kind`` is ``table`` (a private copy
    behind a view; the default) or ``view`` (the live source behind guards). Readers see
    ``schema.name``, by default ``anon`` and the table's name. ``grants`` names roles that may read
    it, PUBLIC included. The same data, options and ``seed`` give the same groups, unless time ran
    out.
    """

    k: int | None
    l: int | None
    models: Sequence[ModelSpec | Mapping[str, object]]
    subject: str | None
    population: str | None
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
    models: tuple[ModelSpec, ...] = ()
    subject: str | None = None
    population: str | None = None
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
        values["models"] = _specs(values.get("models", ()))
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
        models |= {model.name: model for model in self.models}
        budget = self.max_suppressed
        in_force = replace(
            policy,
            models=tuple(models.values()),
            subject=self.subject or policy.subject,
            population=TableName.parse(self.population) if self.population else policy.population,
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
        from dbanon.formats import policies

        kept = asdict(self) | {"models": policies.model_documents(self.models)}
        for name in ("models", "subject", "population", "params", "block"):
            if not kept[name]:
                del kept[name]  # older ledgers lack them, and their digests still hold
        return cast("Options", kept)


def _specs(given: Sequence[ModelSpec | Mapping[str, object]]) -> tuple[ModelSpec, ...]:
    from dbanon.formats import policies

    documents = [
        policies.model_documents([model])[0] if isinstance(model, ModelSpec) else model
        for model in given
    ]
    return policies.models_of(documents)


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
    trees: Mapping[str, object]
    """The taxonomies that the checks of sensitive columns need, by column."""
    several: bool = False
    """Whether some person has several rows."""

    @property
    def recodings(self) -> tuple[tuple[str, str], ...]:
        """(column, recoding) of every quasi-identifier, in policy order."""
        return tuple((column.name, column.recoding) for column in self.outcome.values.columns)


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The rows of a table as algorithms see them, and the keys to find each again.

    trees: as in ``Prepared``; subjects: (n,) the person of each row, if some have several;
    population: of the models that count one.
    """

    rows: SourceRows
    encoded: EncodedTable
    taxonomies: Mapping[str, int]
    trees: Mapping[str, dict[str, Any]]
    subjects: NDArray[np.int32] | None
    population: Population | None = None


def prepare(session: Session, info: TableInfo, request: Request, stages: Stages) -> Prepared:
    """Read the table on the open transaction's snapshot and group its rows; writes nothing.

    Raises PolicyError, TaxonomyError, Unsatisfiable, and DriftError instead of the first two
    when a release of the table is served already.
    """
    from dbanon.anonymize.pipeline import make_algorithm
    from dbanon.db.models import shown_trees

    policy = in_force(session, info, request)
    make_algorithm(policy, stages=stages)  # what is wrong with it is told before anything is read
    source = read_source(session, info, policy, stages, kind=request.kind)
    outcome = search(source, policy, seed=request.seed, stages=stages)
    return Prepared(
        info=info,
        policy=policy,
        taxonomies=source.taxonomies,
        source=source.rows,
        outcome=outcome,
        trees=shown_trees(source.trees, source.rows.columns, group=outcome.assignment.group),
        several=source.subjects is not None,
    )


def in_force(session: Session, info: TableInfo, request: Request) -> Policy:
    """Return the stored policy under the request.

    Raises PolicyError when nothing says k, ConfigError for a live view of what guards do not keep.
    """
    from dbanon.actions.policy import stored_policy

    policy = request.over(stored_policy(session, info))
    if policy.model(K_ANONYMITY) is None:
        raise PolicyError("neither the command nor the policy says k", hint="pass --k 5")
    if request.kind is ReleaseKind.VIEW:
        _require_guarded(policy, info)
    return policy


def read_source(
    session: Session, info: TableInfo, policy: Policy, stages: Stages, *, kind: ReleaseKind
) -> Source:
    """Read and encode the table on the open transaction's snapshot."""
    from dbanon.actions.policy import validate_policy
    from dbanon.actions.population import read_population
    from dbanon.actions.subjects import several_a_person, subjects_of, with_subject
    from dbanon.anonymize.encode import encode
    from dbanon.db import store, transfer

    try:
        validate_policy(session, policy, info)
        several = several_a_person(session, policy, info, kind)
        transfer.require_fit(session, info, policy)
        with stages("read"), _loading_kernels():
            source = transfer.read(session, info, with_subject(policy) if several else policy)
        named = {rule.taxonomy for rule in policy.columns if rule.taxonomy is not None}
        taxonomies = store.load_taxonomies(session, named)
        with stages("encode"):
            kinds = {column.name: column.kind for column in info.columns}
            encoded = encode(source.columns, policy, kinds=kinds, taxonomies=taxonomies)
            subjects = subjects_of(source.columns, policy) if several else None
            source = transfer.without_quasi(source, policy)
        population = read_population(session, info, policy, encoded, stages)
    except (PolicyError, TaxonomyError) as error:
        if store.releases(session, table=info.name, served=True):
            raise DriftError(f"{error} (the served release stays)", hint=error.hint) from None
        raise
    return Source(
        rows=source,
        encoded=encoded,
        taxonomies={name: tree.version for name, tree in taxonomies.items()},
        trees=_trees(policy, taxonomies),
        subjects=subjects,
        population=population,
    )


def search(source: Source, policy: Policy, *, seed: int, stages: Stages) -> Outcome:
    """Group the rows, or the persons where some have several."""
    from dbanon.anonymize.pipeline import run
    from dbanon.anonymize.subjects import run_by_subject

    if source.subjects is None:
        return run(source.encoded, policy, seed=seed, stages=stages, population=source.population)
    return run_by_subject(source.encoded, policy, source.subjects, seed=seed, stages=stages)


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


def _trees(policy: Policy, taxonomies: Mapping[str, Taxonomy]) -> dict[str, dict[str, Any]]:
    from dbanon.db.models import tree_document

    if not any(spec.params.get("distance") == HIERARCHICAL for spec in policy.models):
        return {}
    return {
        rule.column: tree_document(taxonomies[rule.taxonomy])
        for rule in policy.with_role(Role.SENSITIVE)
        if rule.taxonomy is not None
    }


def _require_guarded(policy: Policy, info: TableInfo) -> None:
    """Raise ConfigError for what guards cannot keep, or only by counting the whole table.

    Whoever compares a class with all rows judges every class anew when any row changes, and hiding
    one changes what all others are compared with. That would be a scan, and a lock that lets one
    writer in at a time, for every statement. And the transition tables of PostgreSQL hold no value
    that is generated on reading, so that a guard would not see it change.
    """
    from dbanon.domain.models import MODEL_KINDS, title

    for spec in policy.models:
        if MODEL_KINDS[spec.name].of_whole:
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


def fingerprint(session: Session, prepared_for: TableInfo, policy: Policy, request: Request) -> str:
    """Return a digest of all that a release depends on; equal means nothing changed."""
    import hashlib
    import json

    from dbanon.db import catalog, store
    from dbanon.formats import policies

    named = {rule.taxonomy for rule in policy.columns if rule.taxonomy is not None}
    versions = {name: t.version for name, t in store.load_taxonomies(session, named).items()}
    columns = [
        rule.column
        for rule in policy.columns
        if rule.role is not Role.IDENTIFIER or rule.column == policy.subject
    ]
    content = catalog.content_digest(
        session, prepared_for, sorted({*columns, *prepared_for.primary_key})
    )
    parts = [content, policies.to_document(policy), versions, request.options()]
    if policy.population is not None:
        everybody = catalog.describe(session, policy.population)
        quasi = sorted(rule.column for rule in policy.with_role(Role.QUASI))
        parts.append(catalog.content_digest(session, everybody, quasi))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
