"""What a caller asks of one publication."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import DEFAULT_NAME, K_ANONYMITY, L_DIVERSITY, ModelSpec
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import LONGEST_NAME, TableName, is_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.domain.policy import Policy

_NOT_ALWAYS_KEPT = (
    *("models", "subject", "rows_per_subject", "population", "params", "block"),
    *("keep_assignment", "allow_foreign", "dataset"),
)
_PRIVATE = frozenset({"dbanon", "dbanon_data"})


class Options(TypedDict, total=False):
    """What a caller may ask for over the stored policy; what is left out keeps the policy's word.

    ``policy`` names the stored policy, ``default`` when it is left out.
    ``k``, ``l``, ``subject``, ``rows_per_subject``, ``population``, ``algorithm``,
    ``max_suppressed`` and ``block`` replace the policy's own, each of
    ``models`` the policy's model of that name, and each of ``params`` its parameter of that name;
    another algorithm begins with its own defaults. ``effort`` and ``time_limit`` (seconds) are
    short for parameters that only some algorithms have. ``kind`` is ``table`` (a private copy
    behind a view; the default) or ``view`` (the live source behind guards). Readers see
    ``schema.name``, by default ``anon`` and the table's name, with that of a policy that is not the
    default after it (``patients_research``). ``grants`` names roles that may read
    it, PUBLIC included. ``keep_assignment`` keeps the private tables that tell which row of the
    source is in which class, which a copy needs no more once it is proved. ``allow_foreign`` reads
    foreign tables, too. The same data, options
    and ``seed`` give the same groups, unless time ran out.
    """

    policy: str
    k: int | None
    l: int | None
    models: Sequence[ModelSpec | Mapping[str, object]]
    subject: str | None
    rows_per_subject: int | str | None
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
    keep_assignment: bool
    allow_foreign: bool
    seed: int


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one publication, complete."""

    policy: str = DEFAULT_NAME
    k: int | None = None
    l: int | None = None
    models: tuple[ModelSpec, ...] = ()
    subject: str | None = None
    rows_per_subject: int | str | None = None
    population: str | None = None
    algorithm: str | None = None
    params: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    block: int | None = None
    max_suppressed: float | None = None
    kind: ReleaseKind = ReleaseKind.TABLE
    schema: str = "anon"
    name: str | None = None
    grants: tuple[str, ...] = ()
    keep_assignment: bool = False
    allow_foreign: bool = False
    seed: int = 0
    dataset: tuple[str, ...] = ()
    """The tables that are published together, that of the persons first."""

    @classmethod
    def of(cls, options: Options) -> Request:
        """Complete what a caller gave, or what the ledger kept."""
        values: dict[str, Any] = {**options}
        values["kind"] = ReleaseKind(values.get("kind", ReleaseKind.TABLE))
        for name in ("grants", "dataset"):
            values[name] = tuple(values.get(name, ()))
        values["models"] = _specs(values.get("models", ()))
        short = {name: values.pop(name, None) for name in ("effort", "time_limit")}
        chosen = {name: value for name, value in short.items() if value is not None}
        values["params"] = {**values.get("params", {}), **chosen}
        return cls(**values)

    def view(self, table: TableName) -> TableName:
        """Return the relation that readers will see; raises ConfigError when it cannot be."""
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
        """Whether nothing is to be left of which row is in which class; a live view needs it."""
        return self.kind is ReleaseKind.TABLE and not self.keep_assignment

    def over(self, policy: Policy) -> Policy:
        """Return the policy in force; raises PolicyError when an option is out of bounds."""
        from dbanon.anonymization.parameters import typed
        from dbanon.anonymization.pipeline import algorithm_named
        from dbanon.formats import policies
        from dbanon.formats.policy.anatomy import of_buckets

        name = self.algorithm or policy.algorithm
        same = name == policy.algorithm
        params = {**(policy.params if same else {}), **self.params}
        asked = {
            "subject": self.subject or None,
            "rows_per_subject": self.rows_per_subject or None,
            "population": self.population or None,
            "max_suppressed": self.max_suppressed,
            "block": self.block,
            "params": typed(name, algorithm_named(name), params),
        }
        given = {key: value for key, value in asked.items() if value is not None}
        kept = policy if same else replace(policy, algorithm=name, block=None)
        models = {spec.name: spec for spec in (*policy.models, *self._models())}
        asked_for = replace(kept, models=tuple(models.values()), **policies.settings_of(given))
        return of_buckets(asked_for)

    def _models(self) -> tuple[ModelSpec, ...]:
        """Return the models that are asked for; raises PolicyError for k or l out of bounds."""
        counts = ((K_ANONYMITY, "k", self.k), (L_DIVERSITY, "l", self.l))
        plain = [ModelSpec(name, {key: n}) for name, key, n in counts if n is not None]
        return (*_specs(plain), *self.models)

    def options(self) -> Options:
        """Return what the ledger keeps, so that a refresh can ask for the same."""
        from dbanon.formats import policies

        kept = asdict(self) | {
            "models": policies.model_documents(self.models),
            "kind": self.kind.value,
            "grants": list(self.grants),
            "dataset": list(self.dataset),
        }
        for name in _NOT_ALWAYS_KEPT:
            if not kept[name]:
                del kept[name]  # older ledgers lack them, and their digests still hold
        if self.policy == DEFAULT_NAME:
            del kept["policy"]
        return cast("Options", kept)


def _specs(given: Sequence[ModelSpec | Mapping[str, object]]) -> tuple[ModelSpec, ...]:
    from dbanon.formats import policies

    documents = [
        policies.model_documents([model])[0] if isinstance(model, ModelSpec) else model
        for model in given
    ]
    return policies.models_of(documents)
