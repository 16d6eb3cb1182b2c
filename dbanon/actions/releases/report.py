"""Report the risk and utility of a published relation, confidential or public; compare reports."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dbanon.actions.publish import dataset_of
from dbanon.actions.releases.check import Checked, check_one
from dbanon.actions.releases.released_data import (
    ReleasedAlone,
    ReleasedData,
    read_released_alone,
    read_released_data,
    served,
)
from dbanon.anonymization.registry import recoding_named
from dbanon.anonymization.risk import assessment
from dbanon.anonymization.utility.measure import utility_of
from dbanon.db.metadata import ledger
from dbanon.db.metadata.migrate import current_session
from dbanon.domain import errors
from dbanon.domain.errors import ConfigError
from dbanon.domain.messages import MEANINGS, method_in_words
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import K_ANONYMITY, Policy, Role
from dbanon.domain.release import CheckReport, CheckResult, Release
from dbanon.domain.report import (
    CONFIDENTIAL,
    SAMPLES,
    THRESHOLD,
    Change,
    DatasetReport,
    Difference,
    Report,
    Risk,
    TableReport,
    Utility,
)
from dbanon.domain.text import converted, unread
from dbanon.formats.support import Mode, require
from dbanon.models.base import Bound
from dbanon.models.registry import MODELS
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.anonymization.risk.assessment import PopulationCounts
    from dbanon.domain.table import TableName
    from dbanon.formats.datasets import Dataset


_OF_TWO = "a second relation is needed: dbanon attack RELATION --with OTHER"


@dataclass(frozen=True, slots=True)
class RiskAssessment:
    """Risk and utility, the number of ``sampled`` rows (None: all), and sections without time."""

    risk: Risk
    utility: Utility
    sampled: int | None
    left_out: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class AssessmentInput:
    """The data and limits of an assessment; ``until`` is a time of the monotonic clock."""

    released: Released
    policy: Policy
    stages: Stages
    samples: int = SAMPLES
    seed: int = 0
    until: float | None = None

    @property
    def recoded(self) -> Policy:
        """The policy with the published recoding of each quasi-identifier."""
        shown = {column.name for column in self.released.columns}
        quasi = (column for column in self.released.table.quasi if column.name in shown)
        recodings = {column.name: recoding_named(column) for column in quasi}
        columns = self.policy.columns
        rules = (replace(r, recoding=recodings.get(r.column, r.recoding)) for r in columns)
        return replace(self.policy, columns=tuple(rules))

    @property
    def is_late(self) -> bool:
        """True if no further section should start."""
        return self.stages.stopped or (self.until is not None and monotonic() > self.until)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The sampled rows of the source, or all, in order."""
        n_rows = self.released.table.n_rows
        if n_rows <= self.samples:
            return np.arange(n_rows)
        drawn = np.random.default_rng(self.seed).choice(n_rows, self.samples, replace=False)
        return np.sort(drawn)


def assess(
    inputs: AssessmentInput,
    population_counts: PopulationCounts,
    *,
    threshold: float = THRESHOLD,
    sizes: NDArray[np.int64] | None = None,
    achieved: float | None = None,
) -> RiskAssessment:
    """Return risk and utility, within the time; parameters as ``assessment.risk``."""
    released, left_out = inputs.released, []
    with inputs.stages("risk"):
        risk = assessment.risk(
            released, population_counts, threshold=threshold, sizes=sizes, achieved=achieved
        )
        unique = assessment.unique_in(released, population_counts)
    risk = replace(risk, uniqueness=unique, not_judged=masked(inputs.policy))
    rows = inputs.rows
    if inputs.is_late:
        left_out.append("unique sets")
    else:
        with inputs.stages("unique sets"):
            risk = replace(risk, unique_sets=assessment.sets_of(released, rows))
    if inputs.is_late:
        left_out.append("attacks")
    else:
        risk, late = _attacked(inputs, risk)
        left_out += late
    utility = Utility()
    if inputs.is_late:
        left_out.append("utility")
    else:
        utility = _used(inputs)
    sampled = len(rows) if len(rows) < released.table.n_rows else None
    return RiskAssessment(risk, utility, sampled, tuple(left_out))


def masked(policy: Policy) -> dict[str, str]:
    """Return the sensitive columns with masked values, with the methods."""
    columns = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    steps = {column: policy.masked(column) for column in columns}
    return {
        column: " and ".join(map(method_in_words, masking))
        for column, masking in steps.items()
        if masking
    }


def _attacked(inputs: AssessmentInput, risk: Risk) -> tuple[Risk, list[str]]:
    from dbanon.anonymization.attacks.pair import ATTACKS_ON_BOTH
    from dbanon.anonymization.attacks.registry import LATE, attack

    with inputs.stages("attacks"):
        found = attack(
            inputs.released,
            inputs.policy,
            samples=inputs.samples,
            seed=inputs.seed,
            stages=inputs.stages,
            until=inputs.until,
        )
    late = [f"attack {name}" for name, reason in found.not_tried.items() if reason == LATE]
    why = {name: reason for name, reason in found.not_tried.items() if reason != LATE}
    why |= dict.fromkeys(ATTACKS_ON_BOTH, _OF_TWO)
    return replace(risk, attacks=found.attacks, not_tried=why), late


def _used(inputs: AssessmentInput) -> Utility:
    return utility_of(
        inputs.released,
        inputs.policy,
        generator=np.random.default_rng(inputs.seed),
        samples=inputs.samples,
        stages=inputs.stages,
    )


@dataclass(frozen=True, slots=True)
class ReportLimits:
    """The limits of a report: source rows, seconds, and the threshold of high risk."""

    samples: int = SAMPLES
    time_limit: float | None = None
    threshold: float = THRESHOLD
    population: int | None = None
    seed: int = 0


def report(
    relation: str | TableName,
    *,
    samples: int = SAMPLES,
    time_limit: float | None = None,
    threshold: float = THRESHOLD,
    population: int | None = None,
    public: bool = False,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> Report:
    """Return the risk and utility of a served relation, in figures without names.

    Proves the models again, and compares the release with the present source. Figures of the source
    are exact: the report is confidential. samples: maximum number of source rows; time_limit:
    seconds after which no further section starts; threshold: the risk of a record at risk;
    population: size of the population the table was drawn from, if the policy names no population
    table. Needs the rights of the role that publishes.

    public: return a report for sharing, from the release, its policy and the ledger alone. It reads
    no source row, and ignores samples and time_limit. Needs SELECT on the relation and on the
    metadata.

    Raises ConfigError for a relation without a release, and for a population smaller than the
    table; DriftError if the source is missing or no longer fits the release; NotPermitted,
    TableNotFound. A relation that breaks its promise has a report with failed ``checks``.
    """
    asked = ReportLimits(samples, time_limit, threshold, population)
    _require_sensible(asked)
    if not public:
        also = ", or: dbanon report RELATION --public"
        errors.require_library("sklearn", what="a report", extra="report", also=also)
    stages, settings = stages or Stages(), settings or Settings.load()
    begun = monotonic()
    release = served(relation, settings)
    require(Mode.REPORT, release)
    if public:
        return _public(release, asked, settings, stages)
    with stages("prove"):
        checked = check_one(release.relation, settings=settings)
    if checked.error is not None and not any(result.n_rows for result in checked.results):
        raise checked.error
    seen = read_released_data(release, settings, stages, persons=asked.population)
    owners = seen.released.persons
    known = seen.released.table.n_rows if owners is None else int(owners.max(initial=-1)) + 1
    _require_part(asked.population, known)
    return _assessed(release, checked, seen, asked, stages=stages, begun=begun)


def _require_sensible(asked: ReportLimits) -> None:
    if not 0.0 < asked.threshold < 1.0:
        msg = f"a threshold is a risk between 0 and 1, and not {asked.threshold:g}"
        raise ConfigError(msg, hint="--threshold 0.2: one of five")
    if asked.population is not None and asked.population < 1:
        raise ConfigError("a population has one person at least", hint="--population-size 100000")
    if asked.samples < 1:
        raise ConfigError("at least one row is looked at", hint="--samples 10000")


def _require_part(population: int | None, known: int) -> None:
    """Raise ConfigError if a population is smaller than the number of known persons."""
    if population is not None and population < known:
        raise ConfigError(
            f"a population of {population:,} has fewer persons than the table",
            hint="--population-size 100000: persons of the population of the table",
        )


def _assessed(
    release: Release,
    checked: Checked,
    seen: ReleasedData,
    asked: ReportLimits,
    *,
    stages: Stages,
    begun: float,
) -> Report:
    """Return the report; sections without time are skipped and listed."""
    until = None if asked.time_limit is None else begun + asked.time_limit
    inputs = AssessmentInput(
        seen.released, release.policy, stages, asked.samples, asked.seed, until
    )
    found = assess(
        inputs,
        seen.population_counts,
        threshold=asked.threshold,
        sizes=seen.sizes,
        achieved=_achieved(release, checked),
    )
    return Report(
        relation=release.relation,
        table=release.table,
        release=release.id,
        created_at=release.created_at,
        policy=inputs.recoded,
        checks=CheckReport(release.relation, _proved(release, checked.results)),
        loss=release.loss,
        hidden=_hidden(release, checked.report),
        risk=found.risk,
        utility=found.utility,
        columns=seen.columns,
        taxonomies=dict(release.taxonomies),
        readers=seen.readers,
        statements=seen.statements,
        warnings=seen.warnings,
        sampled=found.sampled,
        left_out=found.left_out,
    )


def _hidden(release: Release, report: CheckReport) -> int:
    """Return the number of rows that a live view lost or gained since its publication."""
    published = release.loss.n_rows - release.loss.n_suppressed
    of_k = report.of_k
    return 0 if of_k is None else abs(published - of_k.n_rows)


def _proved(release: Release, results: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    """Return the present checks, and those of persons, which only the publication could prove."""
    again = {(one.model, one.column) for one in results}
    of_persons = (
        replace(one, column=f"{one.column}, when published")
        for one in release.checks.results
        if one.column is not None and (one.model, one.column) not in again
    )
    return (*results, *of_persons)


def _achieved(release: Release, checked: Checked) -> float | None:
    """Return the smallest class size in rows or persons, then or now."""
    results = (*release.checks.results, *checked.results)
    found = [result.achieved for result in results if result.model == K_ANONYMITY]
    return min((least for least in found if least is not None), default=None)


def _public(release: Release, asked: ReportLimits, settings: Settings, stages: Stages) -> Report:
    """Return the public report; its session sends no query about the source."""
    seen = read_released_alone(release, settings, stages)
    _require_part(asked.population, 0 if release.policy.subject else int(seen.rows))
    population_counts = assessment.PopulationCounts(size=asked.population)
    # With several rows per person a class may have only k persons, as its publication proved.
    achieved = float(release.policy.k) if release.policy.subject else None
    with stages("risk"):
        risk = assessment.risk(
            seen.released,
            population_counts,
            threshold=asked.threshold,
            sizes=seen.sizes,
            achieved=achieved,
        )
    return Report(
        relation=release.relation,
        table=release.table,
        release=release.id,
        created_at=release.created_at,
        policy=release.policy,
        checks=seen.checks,
        loss=None,
        risk=replace(risk, not_judged=masked(release.policy)),
        utility=None,
        columns=seen.columns,
        taxonomies=dict(release.taxonomies),
        readers=seen.readers,
        statements=seen.statements,
        label_loss=seen.label_loss,
        proofs=tuple(_proofs(release, seen.checks)),
        confidential=None,
    )


def _proofs(release: Release, again: CheckReport) -> Iterator[str]:
    """Describe the proofs that only the publication could make, without figures of the source."""
    known = {(one.model, one.column) for one in again.results}
    for one in release.checks.results:
        if (one.model, one.column) not in known:
            of = "" if one.column is None else f" of {one.column}"
            yield f"{one.model}{of}, {one.required:g} required: {one.verdict} when it was published"


def report_dataset(
    dataset: str | Path | Dataset,
    *,
    public: bool = False,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> DatasetReport:
    """Return the proofs for persons across linked tables, and a summary of each table.

    Proves each table again; results across tables, and the loss, are those of the publication.
    public: as in ``report``. Reads no source rows. Raises ConfigError if the tables are not served
    together.
    """
    chosen = dataset_of(dataset)
    settings, stages = settings or Settings.load(), stages or Stages()
    tables = tuple(
        _in_short(release, read_released_alone(release, settings, stages), public=public)
        for release in _together(chosen, settings)
    )
    return DatasetReport(tables, confidential=None if public else CONFIDENTIAL)


def _in_short(release: Release, seen: ReleasedAlone, *, public: bool) -> TableReport:
    checks = seen.checks
    return TableReport(
        relation=release.relation,
        table=release.table,
        release=release.id,
        checks=checks
        if public
        else CheckReport(release.relation, _proved(release, checks.results)),
        loss=None if public else release.loss,
        label_loss=seen.label_loss,
        proofs=tuple(_proofs(release, checks)) if public else (),
    )


def _together(dataset: Dataset, settings: Settings) -> list[Release]:
    """Return the served releases of a dataset, in its order; raises ConfigError without them."""
    with current_session(settings) as session:
        found = [
            one
            for one in ledger.releases(session, served=True)  # newest first
            if len(one.dataset) == len(dataset.names)
            and all(map(_is_named, dataset.names, one.sources))
        ]
    by_table = {one.table: one for one in reversed(found) if one.dataset == found[0].dataset}
    if not found or len(by_table) < len(dataset.names):
        names = ", ".join(map(str, dataset.names))
        raise ConfigError(f"{names} are not served together", hint="dbanon publish --dataset FILE")
    return [by_table[table] for table in found[0].sources]


def _is_named(name: TableName, table: TableName) -> bool:
    return name.name == table.name and name.schema in {None, table.schema}


_EARLIER = "dbanon report RELATION --json > before.json, before it is published again"
_PARTS = ("checks", "loss", "risk", "utility")
_LABELS = "label_loss"
# The keys that name the entries of a list, in order.
_NAMES = (
    *("attacker", "model", "name", "estimator", "column", "columns", "classifier", "selectivity"),
    *("least", "population"),
)
_LEARNED = ("source", "release", "guessing")
_BOUND = "expected"  # of an attack; None without a bound
_GREATEST = 2**63  # no report has such a number
_MORE_IS_BETTER = ("prec", "igpl")  # metrics
_LEAST = 0.01  # minimum relative change


class Differences(NamedTuple):
    """The different figures, in the order of the later report, and the number of equal ones."""

    different: tuple[Difference, ...]
    same: int


class _Phrase(NamedTuple):
    """The description of a figure, and the effects of a larger and a smaller value."""

    figure: str
    words: str
    larger: Change
    smaller: Change
    is_share: bool = False


_RISK, _SAFETY = (Change.RISKIER, Change.SAFER), (Change.SAFER, Change.RISKIER)
_LOSS, _USE = (Change.LESS_USEFUL, Change.MORE_USEFUL), (Change.MORE_USEFUL, Change.LESS_USEFUL)
_RISKED, _LOST, _USED = (*_RISK, True), (*_LOSS, True), (*_USE, True)  # shares
_FOUND, _CLASS = r"risk reidentification \[(.+)\]", r"risk disclosures \[(.+)\]"
_ATTACK, _APART = r"risk attacks \[(.+)\]", r"utility distributions \[(.+)\]"
_ERROR, _LEARNING = r"utility queries \[(.+)\]", r"utility classifications \[(.+)\]"
_WORDINGS = (
    _Phrase(r"checks results \[(.+)\] failing_classes", r"classes that fail \1", *_RISK),
    _Phrase(f"{_FOUND} highest", r"\1 finds the record easiest to find", *_RISKED),
    _Phrase(f"{_FOUND} average", r"\1 finds a record, on average", *_RISKED),
    _Phrase(f"{_FOUND} above", r"records at risk of the \1", *_RISKED),
    _Phrase(f"{_CLASS} highest", r"highest belief in a value of \1", *_RISKED),
    _Phrase(f"{_CLASS} lift", r"\1: belief, times what it was before", *_RISK),
    _Phrase(f"{_CLASS} guessed", r"\1 is guessed by the class", *_RISKED),
    _Phrase(f"{_CLASS} positive", r"\1: rows of which a value is clear", *_RISKED),
    _Phrase(f"{_CLASS} negative", r"\1: rows without a likely value", *_RISKED),
    _Phrase(f"{_CLASS} diversity", r"\1: least diversity of a class", *_SAFETY),
    _Phrase(f"{_CLASS} closeness", r"\1: distance of classes from all", *_RISK),
    _Phrase(r"risk uniqueness \[(.+)\] share", r"unique in the population, by \1", *_RISKED),
    _Phrase(f"{_ATTACK} rate", r"attack is right: \1", *_RISKED),
    _Phrase(f"{_ATTACK} {_BOUND}", r"bound of the attack: \1", *_RISKED),
    _Phrase("loss ncp", "loss of all columns (NCP)", *_LOST),
    _Phrase("loss weighted_ncp", "loss of all columns, weighted (NCP)", *_LOST),
    _Phrase("loss columns (.+)", r"loss of \1", *_LOST),
    _Phrase("label_loss (.+)", r"loss of \1 by its labels", *_LOST),
    _Phrase("loss n_suppressed", "rows left out", *_LOSS),
    _Phrase(f"{_APART} distance", r"\1: distance from the source", *_LOST),
    _Phrase(f"{_APART} shift", r"\1: shift from the source", *_LOST),
    _Phrase("utility associations .+ distance", "associations: from the source", *_LOSS),
    _Phrase(f"{_ERROR} median", r"median error of COUNT queries true of \1", *_LOST),
    _Phrase(f"{_ERROR} upper", r"95th percentile of errors of COUNT queries true of \1", *_LOST),
    _Phrase(f"{_ERROR} imprecision", r"median imprecision of COUNT queries true of \1", *_LOST),
    _Phrase(
        f"{_ERROR} imprecision_upper",
        r"95th percentile of the imprecision of COUNT queries true of \1",
        *_LOST,
    ),
    _Phrase(rf"{_LEARNING} accuracy \[release\]", r"learned: \1, accuracy", *_USED),
    _Phrase(rf"{_LEARNING} auc \[release\]", r"learned: \1, AUC", *_USE),
    *(
        _Phrase(
            f"loss metrics {re.escape(name)}",
            meaning.title,
            *(_USE if name in _MORE_IS_BETTER else _LOSS),
        )
        for name, meaning in MEANINGS.items()
    ),
)
_ACHIEVED = re.compile(r"checks results \[([^,\]]+)(.*)\] (achieved|required)")


def read(path: Path, *, public: bool = False) -> dict[str, Any]:
    """Read a report from JSON; raises ConfigError if it is not a ``public`` one as required."""
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(unread(path, error), hint=converted(path, error) or _EARLIER) from None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not all(part in document for part in _PARTS):
        raise ConfigError(f"{path} holds no report as JSON", hint=_EARLIER)
    if public != (document.get("confidential", CONFIDENTIAL) is None):
        kind, other = ("confidential", "public") if public else ("public", "confidential")
        raise ConfigError(
            f"{path} holds a {kind} report, which is compared with no {other} one",
            hint=f"dbanon report RELATION --json{' --public' if public else ''} > before.json",
        )
    return document


def compare(before: dict[str, Any], now: dict[str, Any]) -> Differences:
    """Return the differences of two reports of one table, of any policies; raises ConfigError."""
    table, other = now.get("table"), before.get("table")
    if table != other:
        raise ConfigError(f"the earlier report is of {other}, and not of {table}", hint=_EARLIER)
    old, new = (dict(figures(document)) for document in (before, now))
    names = dict.fromkeys((*new, *old))
    found = [_difference(name, old, new) for name in names if old.get(name) != new.get(name)]
    return Differences(tuple(found), len(names) - len(found))


def _difference(name: str, old: Mapping[str, float], new: Mapping[str, float]) -> Difference:
    before, now = old.get(name), new.get(name)
    said = _in_words(name)
    if said is None:
        return Difference(name, before, now)
    change = None
    if before is not None and now is not None and _matters(name, old, new):
        change = said.larger if now > before else said.smaller
    return Difference(name, before, now, said.words, change, is_share=said.is_share)


def _in_words(name: str) -> _Phrase | None:
    """Return the description of a figure, None for auxiliary ones."""
    found = _ACHIEVED.fullmatch(name)
    if found is not None and found[1] in MODELS:
        more = _SAFETY if MODELS[found[1]].bound is Bound.AT_LEAST else _RISK
        return _Phrase(name, f"{found[1]}{found[2]}: {found[3]}", *more)
    for one in _WORDINGS:
        match = re.fullmatch(one.figure, name, re.DOTALL)
        if match is not None:
            return one._replace(words=match.expand(one.words))
    return None


def _matters(name: str, old: Mapping[str, float], new: Mapping[str, float]) -> bool:
    """Return True if a figure left its confidence interval and differs by over 1 %."""
    low, high = (old.get(name.removesuffix("rate") + end) for end in ("low", "high"))
    if low is not None and high is not None and low <= new[name] <= high:
        return False
    return abs(new[name] - old[name]) > _LEAST * abs(old[name])


def figures(document: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a report by name, those of column pairs once."""
    for part in (*_PARTS, _LABELS):
        yield from _figures(part, document.get(part))


def _figures(
    name: str, value: object, places: Sequence[object] = ()
) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        if abs(value) < _GREATEST:
            yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == _BOUND and item is None:
                yield f"{name} {key}", 1.0
            elif key not in _NAMES:
                yield from _figures(f"{name} {key}", item, _places(key, value))
        if "columns" in value:
            yield from _apart(name, value)
    elif isinstance(value, list):
        yield from _entries(name, value, places)


def _entries(
    name: str, value: Sequence[object], places: Sequence[object]
) -> Iterator[tuple[str, float]]:
    for number, item in enumerate(value):
        named = _named(item, places[number] if number < len(places) else number + 1)
        if isinstance(item, list):  # of a column and those after it, as before it is the same
            after = [None] * (number + 1)
            yield from _figures(f"{name} {named}", [*after, *item[number + 1 :]], places)
        else:
            yield from _figures(f"{name} {named}", item)


def _places(key: str, value: Mapping[str, object]) -> Sequence[object]:
    """Return names for the entries of a list, from the neighboring keys."""
    if key in ("accuracy", "auc"):
        return _LEARNED
    found = value.get("columns", value.get("bins"))
    return found if isinstance(found, list) else ()


def _apart(name: str, value: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    pairs = [dict(_figures("", value.get(part), ())) for part in ("source", "published")]
    gaps = [abs(pairs[1][one] - pairs[0][one]) for one in pairs[0] if one in pairs[1]]
    if gaps:
        yield f"{name} distance", sum(gaps) / len(gaps)


def _named(item: object, place: object) -> str:
    found = [item[key] for key in _NAMES if item.get(key)] if isinstance(item, dict) else []
    parts = [", ".join(map(str, part)) if isinstance(part, list) else str(part) for part in found]
    return f"[{', '.join(parts) or place}]"
