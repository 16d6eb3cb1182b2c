"""Group a table as a publication does, and write nothing."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbanon.actions.preparation import loading
from dbanon.actions.preparation.loading import find_published, load_for, looking
from dbanon.actions.publication.plan import PublicationPlan, resolve
from dbanon.actions.publication.series import relation_of
from dbanon.actions.publication.steps import STEPS, Printer, Step, Work, begun, group
from dbanon.actions.publish import dataset_of
from dbanon.actions.releases.report import AssessmentInput, assess
from dbanon.anonymization.problem import Problem, solve
from dbanon.anonymization.released.reading import certified, of_outcome
from dbanon.anonymization.risk.assessment import PopulationCounts
from dbanon.db import identity
from dbanon.db.histories import memory
from dbanon.db.proofs import checks
from dbanon.db.queries import printed, script
from dbanon.db.session import Session, connect
from dbanon.domain import errors
from dbanon.domain.errors import DbanonError
from dbanon.domain.messages import GAINED, MUCH, SEVERAL, advice_on
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import K_ANONYMITY, Policy, Role
from dbanon.domain.release import CheckReport, GroupReuse
from dbanon.domain.report import Report
from dbanon.domain.table import TableInfo, TableName, quote_identifier
from dbanon.domain.text import listed
from dbanon.formats.support import Mode, require
from dbanon.models.registry import sensitive_of, title
from dbanon.models.tally import joint_codes
from dbanon.request import Request, spelled_out
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dbanon.actions.preparation.prepare import Prepared
    from dbanon.db.releases.publication import Publication
    from dbanon.domain.assignment import EncodedTable, LossReport
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.formats.datasets import Dataset

_MOST_ROWS = 20_000  # rows that are grouped again for advice


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """A quasi-identifier: its recoding, published type and loss in [0, 1].

    others: the loss of each other possible recoding in these classes, least first, measured on a
    sample of many classes; () if unknown.
    """

    name: str
    recoding: str
    type: str
    loss: float
    others: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of the publication, in words, with its SQL as far as it is known."""

    name: str
    purpose: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of a plan: columns, loss, and the ``steps`` that follow the grouping, in order.

    ``sharing`` describes the reuse of earlier classes, None if all rows are grouped again. The SQL
    names a private table ``rows_0`` instead of the number of the release. ``advice``: the model or
    the columns without which much less is lost, if there is such.
    """

    policy: Policy
    relation: TableName
    columns: tuple[PlannedColumn, ...]
    loss: LossReport
    steps: tuple[PlannedStep, ...]
    warnings: tuple[PolicyWarning, ...] = ()
    sharing: GroupReuse | None = None
    advice: str | None = None

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL of all steps."""
        return tuple(statement for step in self.steps for statement in step.statements)

    @property
    def script(self) -> str:
        """``statements`` as a script for psql, without rows, rolled back at its end."""
        return script(self.statements, end="ROLLBACK")


def plan_request(table: str | TableName, request: Request) -> Plan:
    """Group a table by its stored policy and return the cost of publishing it.

    ``draft`` is a policy to use instead, a value or the path of a TOML file; it is not stored.
    Takes the options of ``publish`` and raises its errors, those of the relation to replace
    included. Needs no right to create anything but temporary tables, and these only if the table
    was published before.
    """
    request, given = loading.requested(request)
    with _grouped([table], request, given) as found:
        (planned,) = _planned(found)
    searched = _advice(found.prepared[0], seed=request.seed)
    return planned if searched is None else replace(planned, advice=searched)


def _known(prepared: Prepared) -> str | None:
    """Return advice from the loss by column, without another search."""
    if prepared.sharing is not None:  # its classes are unions, which are not to change
        return None
    return advice_on(prepared.outcome.loss, prepared.member.policy)


def _advice(prepared: Prepared, *, seed: int) -> str | None:
    """Group without each model, and without two columns; return what loses much less, in words."""
    encoded, lost = prepared.encoded, prepared.outcome.loss.ncp
    if encoded is None or lost < MUCH or encoded.n_rows > _MOST_ROWS or prepared.several:
        return None
    if prepared.sharing is not None:  # its classes are unions, not those of a search
        return None
    found: list[tuple[float, str]] = []
    for words, other, rows in _less(prepared.outcome.loss, prepared.member.policy, encoded):
        try:
            loss = solve(Problem(rows, other), seed=seed, stages=Stages()).loss.ncp
        except DbanonError:
            continue
        found.append((loss, words.format(points=100 * (lost - loss), before=lost, after=loss)))
    least, advice = min(found, default=(lost, None))
    return advice if lost - least >= GAINED else None


def _less(
    loss: LossReport, policy: Policy, encoded: EncodedTable
) -> Iterator[tuple[str, Policy, EncodedTable]]:
    """Yield weaker policies with their rows, and a sentence about each."""
    if policy.anatomy or policy.population is not None or policy.block is not None:
        return
    for spec in policy.models:
        others = tuple(one for one in policy.models if one != spec)
        if spec.name != K_ANONYMITY and others:
            of = listed(map(quote_identifier, sensitive_of(spec, encoded.sensitive_names)))
            named = title(spec) + (f" of {of}" if of else "")
            words = (
                f"{_literal(named)} costs {{points:.0f}} points of NCP: without it {{after:.1%}}"
            )
            yield words, replace(policy, models=others), encoded
    dropped = sorted(loss.columns, key=lambda name: -loss.columns[name])[:2]
    if len(encoded.quasi) >= SEVERAL:
        names = listed(map(quote_identifier, dropped))
        words = f"{len(encoded.quasi)} quasi-identifiers for {encoded.n_rows:,} rows: leaving out"
        words += f" {_literal(names)} brings"
        columns = tuple(rule for rule in policy.columns if rule.column not in dropped)
        quasi = tuple(column for column in encoded.quasi if column.name not in dropped)
        rows = replace(encoded, quasi=quasi)
        yield f"{words} {{before:.0%}} to {{after:.0%}}", replace(policy, columns=columns), rows


def _literal(text: str) -> str:
    """Return a text that ``format`` does not change."""
    return text.replace("{", "{{").replace("}", "}}")


def plan_report_request(table: str | TableName, request: Request) -> tuple[Plan, Report]:
    """Plan a publication, and report its risk and utility.

    Takes the options of ``plan`` and raises its errors. The report has no release. Its checks are
    those of the search; the database proves when it publishes.
    """
    errors.require_library("sklearn", what="a report", extra="report")
    stages = request.stages or Stages()
    request, given = loading.requested(replace(request, stages=stages))
    with _grouped([table], request, given) as grouped:
        (found,) = _planned(grouped)
    return found, _report(found, grouped.prepared[0], request, stages)


_PREVIEWED = 20  # rows


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan with its report, and some rows as they would be published.

    columns: quasi-identifiers and unmasked sensitive columns; rows: their labels, None for NULL;
    omitted: other published columns.
    """

    plan: Plan
    report: Report
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    omitted: tuple[str, ...] = ()


def preview_request(table: str | TableName, request: Request) -> Preview:
    """Plan a publication with its report, and return some rows of it in random order.

    Takes the options of ``plan`` and raises its errors. By anatomy, whose quasi-identifiers are
    published as they are, no row is returned.
    """
    errors.require_library("sklearn", what="a report", extra="report")
    stages = request.stages or Stages()
    request, given = loading.requested(replace(request, stages=stages))
    with _grouped([table], request, given) as grouped:
        (found,) = _planned(grouped)
    prepared = grouped.prepared[0]
    report = _report(found, prepared, request, stages)
    quasi = prepared.outcome.values.columns
    sensitive = [r.column for r in found.policy.with_role(Role.SENSITIVE)]
    sensitive = [name for name in sensitive if not found.policy.masked(name)]
    group = prepared.outcome.assignment.group
    drawn = np.random.default_rng(request.seed).permutation(np.flatnonzero(group >= 0))[:_PREVIEWED]
    columns = [[one.labels[i] for i in one.index[group[drawn]].tolist()] for one in quasi]
    for name in sensitive:
        values = prepared.source.columns[name].take(drawn).to_pylist()
        columns.append([None if value is None else str(value) for value in values])
    names = (*(column.name for column in quasi), *sensitive)
    published = {name for rule in found.policy.columns for name in rule.published_as}
    omitted = tuple(sorted(published - {*names, *found.policy.published_quasi}))
    rows = () if found.policy.anatomy else tuple(zip(*columns, strict=True))
    return Preview(found, report, names, rows, omitted)


def _report(found: Plan, prepared: Prepared, request: Request, stages: Stages) -> Report:
    """Return the report of the planned relation; sends no statement."""
    policy, encoded, persons = found.policy, prepared.encoded, prepared.subjects
    if encoded is None:
        msg = "the rows of a plan were not kept"
        raise DbanonError(msg, hint="this is a defect of dbanon")
    if policy.subject is not None and persons is None:
        persons = np.arange(encoded.n_rows, dtype=np.int32)
    shown = prepared.outcome.assignment.group >= 0
    with stages("see"):
        released = of_outcome(encoded, prepared.outcome, policy, persons=persons)
        results = certified(released, policy, several=prepared.several)
    inputs = AssessmentInput(released, policy, stages, seed=request.seed)
    verdict = assess(
        inputs,
        PopulationCounts(name="" if policy.population is None else str(policy.population)),
        sizes=np.bincount(joint_codes(encoded.codes[shown])) if policy.anatomy else None,
        achieved=float(policy.k) if prepared.several else None,
    )
    return Report(
        relation=found.relation,
        table=policy.table,
        release=None,
        created_at=None,
        policy=inputs.recoded,
        checks=CheckReport(found.relation, results),
        loss=found.loss,
        risk=verdict.risk,
        utility=verdict.utility,
        columns=_types(found, prepared),
        taxonomies=dict(prepared.member.versions),
        readers=tuple(sorted(set(request.grants))),
        statements=(printed(checks.verification(checks.named(found.relation))).strip(),),
        warnings=found.warnings,
        sampled=verdict.sampled,
        left_out=verdict.left_out,
    )


def _types(found: Plan, prepared: Prepared) -> dict[str, str]:
    """Return the type of each published column."""
    recoded = {column.name: column.type for column in found.columns}
    types = {column.name: column.type for column in prepared.member.info.columns}
    return {
        name: "text" if rule.replace else recoded.get(rule.column, types.get(rule.column, ""))
        for rule in found.policy.columns
        for name in rule.published_as
    }


@dataclass(frozen=True, eq=False, slots=True)
class _Grouped:
    """The tables of a plan, grouped in a transaction that is open."""

    session: Session
    plan: PublicationPlan
    prepared: list[Prepared]


@contextmanager
def _grouped(
    tables: Sequence[str | TableName], request: Request, given: Policy | None = None
) -> Iterator[_Grouped]:
    """Group tables as a publication does, on a snapshot that stays open during the block."""
    names = [TableName.parse(one) for one in tables]

    def is_remembered(info: TableInfo) -> bool:
        relation = relation_of(info.name, request)
        return len(names) == 1 and memory.key_of(session, info.name, relation) is not None

    with connect(request.settings or Settings.load()) as session:
        finds = [partial(find_published, session, name) for name in names]
        with looking(session, *finds, needs_tables=is_remembered) as infos:
            loaded = [load_for(session, info, request, draft=given) for info in infos]
            identity.admit(session, *infos)
            plan = resolve(session, loaded, request)
            stages = request.stages or Stages()
            yield _Grouped(session, plan, group(session, plan, stages, weigh=True))


def plan_dataset_request(dataset: str | Path | Dataset, request: Request) -> list[Plan]:
    """Group the persons of a dataset and return the cost of publishing its tables.

    Takes the options of ``publish_dataset`` and raises its errors, but needs no right to create
    anything.
    """
    chosen = dataset_of(dataset)
    require(Mode.DATASET, request.given)
    with _grouped(chosen.names, request) as found:
        return _planned(found)


def _planned(found: _Grouped) -> list[Plan]:
    begin = partial(begun, found.session, found.plan)
    works = [begin(one, part=part) for part, one in enumerate(found.prepared)]
    steps = [step for step in STEPS if step.concerns(works)]
    return [
        Plan(
            policy=one.publication.policy,
            relation=one.publication.view,
            columns=tuple(_columns(one.prepared, one.publication)),
            loss=one.prepared.outcome.loss,
            steps=tuple(_printed(found, steps, one)),
            warnings=one.prepared.warnings,
            sharing=one.prepared.sharing,
            advice=_known(one.prepared),
        )
        for one in works
    ]


def _columns(prepared: Prepared, publication: Publication) -> Iterator[PlannedColumn]:
    for (name, recoding), type_name in zip(prepared.recodings, publication.types, strict=True):
        loss, others = prepared.outcome.loss.columns.get(name, 0.0), prepared.losses.get(name, {})
        yield PlannedColumn(name, recoding, type_name, loss, others)


def _printed(found: _Grouped, steps: Sequence[Step], work: Work) -> Iterator[PlannedStep]:
    """Yield the steps of a table, each run without a change to the database."""
    for step in steps:
        to = Printer(found.session)
        (work,) = step.run(to, found.plan, [work])
        statements = tuple(printed(one).strip() for one in to.statements)
        yield PlannedStep(step.name, step.purpose, statements)


plan = spelled_out(plan_request, "plan", make=Request)
plan_with_report = spelled_out(plan_report_request, "plan_with_report", make=Request)
plan_dataset = spelled_out(plan_dataset_request, "plan_dataset", make=Request)
