"""Compare several algorithms on one table."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, cast

import numpy as np

from dbanon.actions.preparation import loading
from dbanon.actions.preparation.inputs import input_tables
from dbanon.actions.preparation.loading import find_published, load, looking
from dbanon.actions.preparation.prepare import Source, read_source
from dbanon.anonymization.adjusting.repair import REGROUPED
from dbanon.anonymization.interfaces import listens, parameters
from dbanon.anonymization.outcome import requirement_of
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.registry import algorithm_named
from dbanon.anonymization.released.reading import of_outcome
from dbanon.anonymization.utility.examples import Question, answer, questions
from dbanon.anonymization.utility.readings import readings_of
from dbanon.db import catalog, identity
from dbanon.db.session import connect
from dbanon.domain.errors import DbanonError, PolicyError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, Policy
from dbanon.domain.table import UNPRINTED, TableInfo, TableName
from dbanon.formats.support import Mode, require
from dbanon.models.base import COLUMNS
from dbanon.models.registry import texts
from dbanon.request import Request, spelled_out
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbanon.anonymization.outcome import Outcome
    from dbanon.domain.assignment import EncodedTable, LossReport
    from dbanon.domain.report import Answer

# The default algorithms: fast on tables of some ten thousand rows.
USUAL = (
    "auto",
    "mondrian",
    "mondrian-relaxed",
    "top-down",
    "k-member",
    "optimal-lattice",
    "projection",
)


# Few enough that every algorithm is done at once.
_WARM_UP_ROWS = 50


@dataclass(frozen=True, slots=True)
class Compared:
    """The cost of one algorithm at one k, or the reason of a failure; seconds: of the search.

    regrouped: cuts of the whole table replace its groups, because most rows failed a model. sizes:
    rows of the smallest, the median and the largest class; answers: to queries of an analyst,
    without counts below k; both are empty if times were to be compared.
    """

    algorithm: str
    k: int
    loss: LossReport | None = None
    seconds: float | None = None
    reason: str | None = None
    regrouped: bool = False
    sizes: tuple[int, ...] = field(default=(), metadata=UNPRINTED)
    answers: tuple[Answer, ...] = field(default=(), metadata=UNPRINTED)

    @property
    def title(self) -> str:
        """The algorithm, and if its groups were replaced."""
        return f"{self.algorithm} (regrouped)" if self.regrouped else self.algorithm


class Examples:
    """Queries of an analyst, those that the first candidate allows, for all of them."""

    def __init__(self) -> None:
        self._questions: tuple[Question, ...] | None = None

    def __call__(
        self, source: Source, outcome: Outcome, policy: Policy
    ) -> tuple[tuple[int, ...], tuple[Answer, ...]]:
        """Return the smallest, the median and the largest size of a class, and the answers.

        There are none if a person may have several rows: many rows may be of few persons.
        """
        released = of_outcome(source.encoded, outcome, policy, persons=source.subjects)
        if not released.n_classes:
            return (), ()
        sizes = np.sort(released.size)[[0, released.n_classes // 2, -1]].tolist()
        if source.subjects is not None:
            return tuple(sizes), ()
        readings = readings_of(released)
        if self._questions is None:
            self._questions = questions(readings)
        return tuple(sizes), tuple(
            answer(each, readings, least=policy.k) for each in self._questions
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of algorithms on the same rows, in the requested order.

    ``l`` is the minimum number of distinct values of the sensitive columns, or of ``l_columns``;
    is_sample: whether the table has more rows.
    """

    table: TableName
    n_rows: int
    l: int
    ks: tuple[int, ...]
    results: tuple[Compared, ...]
    l_columns: tuple[str, ...] = ()
    is_sample: bool = field(default=False, metadata=UNPRINTED)

    @property
    def diversity(self) -> str:
        """``l`` with its columns, as text for a title; empty if l is 1."""
        of = f" ({', '.join(self.l_columns)})" if self.l_columns else ""
        return f", l = {self.l:,}{of}" if self.l > 1 else ""

    @property
    def is_weighted(self) -> bool:
        """True if the policy and the searches weight columns."""
        losses = [result.loss for result in self.results if result.loss is not None]
        return any(loss.weighted_ncp is not None for loss in losses)


def compare_request(table: str | TableName, request: Request) -> Comparison:
    """Run algorithms on one table, read once, and return the cost of each; writes nothing.

    ks: values of k to try instead of the policy's; those above the number of rows are skipped. Each
    algorithm gets its own parameters of ``params``. A failed one has a reason in the result. Raises
    as ``plan`` before the first algorithm runs, and PolicyError for an unknown algorithm or a
    parameter that none has.
    """
    *_, found = comparisons(table, request, is_timed=True)
    return found


def comparisons(
    table: str | TableName,
    request: Request,
    *,
    most_rows: int | None = None,
    is_timed: bool = False,
) -> Iterator[Comparison]:
    """Compare as ``compare_request``, and yield the comparison before and after each result.

    most_rows: of a larger table, a sample of pages with about so many rows is compared instead,
    which loses more than all rows do. is_timed: the seconds of a search include no compilation;
    otherwise each result has the sizes of its classes, and answers.
    """
    stages = request.stages or Stages()
    info, source, candidates, ks = _read(table, request, stages, most_rows=most_rows)
    least = candidates[0].with_k(ks[0])
    requirement_of(source.encoded, least)  # raises Unsatisfiable if no k is possible
    tried = tuple(k for k in ks if k <= source.encoded.n_rows)
    for candidate in candidates if is_timed else ():
        _warm_up(source.encoded, candidate, tell=stages.on_note)
    l, l_columns = _diversity(candidates[0])
    is_sample = info.sampled is not None
    found = Comparison(info.name, source.encoded.n_rows, l, tried, (), l_columns, is_sample)
    yield found
    examples = None if is_timed else Examples()
    for k, candidate in product(tried, candidates):
        policy = candidate.with_k(k)
        result = _attempt(source, policy, examples, seed=request.seed, stages=stages)
        found = replace(found, results=(*found.results, result))
        yield found


def _read(
    table: str | TableName, request: Request, stages: Stages, *, most_rows: int | None
) -> tuple[TableInfo, Source, list[Policy], list[int]]:
    """Read the rows to compare; return them with the policy of each algorithm, and all k."""
    request, given = loading.requested(request)
    wanted = {*request.ks} if request.k is None else {*request.ks, request.k}
    if wanted:
        request = replace(request, k=min(wanted))
    with (
        connect(request.settings or Settings.load()) as session,
        looking(session, partial(find_published, session, TableName.parse(table))) as (info,),
    ):
        identity.admit(session, info)
        loaded = load(session, info, request.policy, draft=given)
        if most_rows is not None:
            _, rows = catalog.sampled(session, loaded.info, most=most_rows, above=most_rows)
            loaded = replace(loaded, info=rows)
        (member,) = input_tables([loaded], replace(request, params={}, block=None))
        policy = member.policy
        require(Mode.COMPARISON, request.for_table(policy, loaded.info))
        candidates = _candidates(policy, request, request.algorithms or USUAL)
        source = read_source(session, member, stages, kind=request.relation_kind)
    return loaded.info, source, candidates, sorted(wanted or {policy.k})


def _diversity(policy: Policy) -> tuple[int, tuple[str, ...]]:
    spec = policy.model(L_DIVERSITY)
    if spec is None:
        return 1, ()
    return cast("int", spec.params["l"]), texts(spec, COLUMNS)


def _candidates(policy: Policy, request: Request, names: Sequence[str]) -> list[Policy]:
    factories = {name: algorithm_named(name) for name in names}
    known = {name: parameters(factory) for name, factory in factories.items()}
    for parameter in request.params:
        if not any(parameter in has for has in known.values()):
            raise PolicyError(
                f"none of {', '.join(names)} has a parameter {parameter!r}",
                hint="--algorithms NAME,NAME with one that has it",
            )
    return [
        replace(
            policy,
            algorithm=name,
            params={
                **(policy.params if name == policy.algorithm else {}),
                **{key: value for key, value in request.params.items() if key in known[name]},
            },
            block=None if listens(factory) else request.block or policy.block,
        )
        for name, factory in factories.items()
    ]


def _warm_up(encoded: EncodedTable, policy: Policy, *, tell: Callable[[str], None] | None) -> None:
    """Run an algorithm on a few rows, so that compilation is not measured."""
    rows = np.arange(min(encoded.n_rows, _WARM_UP_ROWS))
    quick = replace(policy.with_k(2), params={}, block=None, max_suppressed=0.0)
    quick = replace(quick, models=tuple(m for m in quick.models if m.name == K_ANONYMITY))
    with suppress(Exception):  # its error is reported when it runs
        problem = Problem(encoded.take(rows), quick)
        solve(problem, seed=0, stages=Stages(on_note=tell))


def _attempt(
    source: Source, policy: Policy, examples: Examples | None, *, seed: int, stages: Stages
) -> Compared:
    if stages.stopped:
        return Compared(policy.algorithm, policy.k, reason="not run: stopped before")
    before, remarks = stages.seconds.get("cluster", 0.0), len(stages.remarks)
    try:
        with _named(stages, policy.algorithm):
            outcome = solve(source.problem(policy), seed=seed, stages=stages)
            sizes, answers = ((), ()) if examples is None else examples(source, outcome, policy)
    except DbanonError as error:
        advice = f" (try: {error.hint})" if error.hint else ""
        return Compared(policy.algorithm, policy.k, reason=f"{error}{advice}")
    except Exception as error:  # noqa: BLE001 - one that breaks does not end the comparison
        # The text of an unexpected error may quote a row, so only its type is reported.
        return Compared(policy.algorithm, policy.k, reason=f"unforeseen {type(error).__name__}")
    seconds = stages.seconds["cluster"] - before
    regrouped = REGROUPED in stages.remarks[remarks:]
    return Compared(
        policy.algorithm, policy.k, outcome.loss, seconds, None, regrouped, sizes, answers
    )


@contextmanager
def _named(stages: Stages, algorithm: str) -> Iterator[None]:
    tell = stages.on_start
    if tell is not None:
        stages.on_start = lambda stage: tell(f"{algorithm}: {stage}")
    try:
        yield
    finally:
        stages.on_start = tell


compare = spelled_out(compare_request, "compare", make=Request)
