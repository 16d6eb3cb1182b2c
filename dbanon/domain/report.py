"""Risk and utility of a publication, in figures that identify no one.

Shares are in [0, 1]. The steward's report has exact figures of the source. The public one has none:
it depends only on the release, its policy and its ledger entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.policy import Approval, Policy
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.domain.release import CheckReport, CheckResult, ReleaseKind
    from dbanon.domain.table import TableName


CONFIDENTIAL = "Confidential: contains figures of the source"
"""Heading of a report that must not be passed on with the release."""

SAMPLES, THRESHOLD = 10_000, 0.2
"""Default number of sampled targets, and default share of records at high risk."""

BEYOND = (" or less", " or more")
"""Suffixes of the first and the last bin of a distribution if they are open."""


class Attacker(StrEnum):
    """Attackers of El Emam and Dankar (JAMIA 2008).

    The prosecutor knows that the person is in the relation, the journalist that someone of a
    population is; the marketer wants to find many persons.
    """

    PROSECUTOR = "prosecutor"
    JOURNALIST = "journalist"
    MARKETER = "marketer"


@dataclass(frozen=True, slots=True)
class Reidentification:
    """Probability that an attacker finds the record of a person.

    highest: of the record at greatest risk; average: over records; above: share of records above
    ``threshold``; basis: relation, population table or population estimator; is_bound: ``average``
    and ``above`` are upper bounds, because the persons of classes are unknown.
    """

    attacker: Attacker
    highest: float
    average: float
    above: float
    threshold: float
    basis: str
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class SizeBand:
    """Classes of ``least`` to ``most`` rows, and their rows; the last band has no end."""

    least: int
    most: int | None
    classes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What the classes disclose of a sensitive column, beyond the whole relation.

    highest: greatest posterior belief in a value; lift: greatest ratio of posterior to prior;
    guessed: share of rows with the most frequent value of their class, baseline: of the relation;
    positive: share of rows with a value newly believed above 1 - delta, negative: newly below
    epsilon; diversity: least exponential of a class's entropy; closeness: greatest distance of a
    class from the relation (t-closeness).
    """

    column: str
    values: int
    highest: float
    lift: float
    guessed: float
    baseline: float
    positive: float
    negative: float
    diversity: float
    closeness: float


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """Estimated share of unique persons in a population; sampled: the source's share of it."""

    estimator: str
    population: int
    sampled: float
    share: float


@dataclass(frozen=True, slots=True)
class UniqueSet:
    """Columns that make rows unique, as no subset does; rows: number among those sampled."""

    columns: tuple[str, ...]
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class Naming:
    """Persons with a named value, for whom it was right, and for whom the most frequent was."""

    persons: int
    right: int
    usual: int


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on sampled persons.

    candidates: median number of remaining rows; expected: greatest rate that the models permit,
    None if unbounded; rate: share of persons guessed correctly, low, high: its 95 % confidence
    interval; baseline: rate of guesses without the release; named: None for attacks that name no
    values.
    """

    name: str
    column: str | None
    tried: int
    candidates: float | None
    rate: float
    low: float
    high: float
    baseline: float
    expected: float | None
    words: str
    named: Naming | None = None

    @property
    def is_beyond(self) -> bool:
        """True if it is more often right than guessing, and than a model permits, if any does."""
        return self.rate > max(self.baseline, self.expected or 0.0)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Shares of the values of a column in the source and in the publication.

    bins: published labels, or a round grid; distance: total variation; shift: mean move of a row as
    a share of all bins (earth mover's distance), None without an order.
    """

    column: str
    bins: tuple[str, ...]
    source: tuple[float, ...]
    published: tuple[float, ...]
    distance: float
    shift: float | None = None


@dataclass(frozen=True, slots=True)
class Association:
    """Associations of columns: (d, d) each, correlation or Cramer's V, None if undefined.

    exact: columns published unchanged for every row. Pairs of them are not measured: without
    suppression, they are as in the source.
    """

    columns: tuple[str, ...]
    source: tuple[tuple[float | None, ...], ...]
    published: tuple[tuple[float | None, ...], ...]
    exact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryError:
    """Errors of random COUNT queries that match about a given share of the rows.

    selectivity: that share; median, upper: median and 95th percentile of the relative errors;
    imprecision, imprecision_upper: of the excess rows in classes that overlap the query, relative
    to the true count.
    """

    selectivity: float
    queries: int
    median: float
    upper: float
    imprecision: float
    imprecision_upper: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of the source and of the release that a query counts, None for few."""

    query: str
    source: int | None
    published: float | None


@dataclass(frozen=True, slots=True)
class Classification:
    """Quality of a classifier of a source column, trained on the source and on the release.

    accuracy, auc: (source, release, guessing), on held-out rows; rows, tested: numbers of rows.
    """

    column: str
    classifier: str
    accuracy: tuple[float, float, float]
    auc: tuple[float, float, float] | None
    rows: int = 0
    tested: int = 0

    @property
    def is_predicted(self) -> bool:
        """True if training on the source beats guessing, so that something can be lost."""
        return self.accuracy[0] > self.accuracy[2]

    @property
    def lost(self) -> float:
        """Accuracy of the source minus that of the release, at least 0."""
        return max(self.accuracy[0] - self.accuracy[1], 0.0)

    @property
    def guessed_in_words(self) -> str:
        """Remark if nothing can be predicted."""
        return (
            f"{self.column} cannot be predicted by {self.classifier} even from the source:"
            " a guesser is right as often, so no accuracy can be lost"
        )


@dataclass(frozen=True, slots=True)
class Risk:
    """All risk figures of a relation.

    not_judged: masked sensitive columns, and how; not_tried: attacks that were not tried, and why;
    floors: quasi-identifiers known only to a floor, so uniqueness is that of coarser values than in
    the source.
    """

    reidentification: tuple[Reidentification, ...]
    sizes: tuple[SizeBand, ...]
    disclosures: tuple[Disclosure, ...] = ()
    uniqueness: tuple[Uniqueness, ...] = ()
    unique_sets: tuple[UniqueSet, ...] = ()
    attacks: tuple[Attack, ...] = ()
    not_judged: Mapping[str, str] = field(default_factory=dict)
    not_tried: Mapping[str, str] = field(default_factory=dict)
    floors: Mapping[str, str] = field(default_factory=dict)

    @property
    def counted_in_words(self) -> str:
        """Basis of the uniqueness of persons."""
        if not self.floors:
            return "unique by exact values, as inspect counts them"
        floors = "; ".join(f"{name}: {floor}" for name, floor in self.floors.items())
        return (
            f"unique by values as the policy's floors leave them ({floors});"
            " inspect counts exact values, by which more are unique"
        )

    @property
    def masked_in_words(self) -> list[str]:
        """Remark on each masked sensitive column."""
        return [f"not judged: {name} is masked by {how}" for name, how in self.not_judged.items()]

    @property
    def not_tried_in_words(self) -> list[str]:
        """Remark on the attacks that were not tried, once for each reason."""
        reasons = dict.fromkeys(self.not_tried.values())
        return [
            f"not tried: {', '.join(n for n, why in self.not_tried.items() if why == reason)},"
            f" as {reason}"
            for reason in reasons
        ]


@dataclass(frozen=True, slots=True)
class Utility:
    """All utility figures of a relation."""

    distributions: tuple[Distribution, ...] = ()
    associations: tuple[Association, ...] = ()
    queries: tuple[QueryError, ...] = ()
    classifications: tuple[Classification, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """Remarks on columns that cannot be predicted."""
        return [one.guessed_in_words for one in self.classifications if not one.is_predicted]


@dataclass(frozen=True, slots=True)
class Report:
    """Report about a relation for its steward, or for the public.

    confidential: heading of a report with figures of the source, None for a public one; release:
    None for a plan; columns: published type of each; taxonomies: version of each; readers: granted
    roles; statements: SQL that repeats the checks. Of the source: loss, utility, warnings, sampled
    (number of source rows read, if not all), left_out (sections skipped for time), hidden
    (published rows that a live view now hides), and of ``risk`` uniqueness, sets and attacks. A
    public report has instead label_loss, the loss of each quasi-identifier with suitable labels,
    and proofs, the models that only the publication could prove.
    """

    relation: TableName
    table: TableName
    release: int | None
    created_at: datetime | None
    policy: Policy
    checks: CheckReport
    loss: LossReport | None
    risk: Risk
    utility: Utility | None
    columns: Mapping[str, str] = field(default_factory=dict)
    taxonomies: Mapping[str, int] = field(default_factory=dict)
    readers: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    warnings: tuple[PolicyWarning, ...] = ()
    sampled: int | None = None
    left_out: tuple[str, ...] = ()
    hidden: int = 0
    label_loss: Mapping[str, float] = field(default_factory=dict)
    proofs: tuple[str, ...] = ()
    confidential: str | None = CONFIDENTIAL

    @property
    def now(self) -> CheckResult | None:
        """The check of k, or the first one, with the rows and classes that are served now."""
        return self.checks.of_k or next(iter(self.checks.results), None)

    @property
    def hiding(self) -> CheckResult | None:
        """The check of k, if a live view hides published rows."""
        return self.now if self.hidden else None


@dataclass(frozen=True, slots=True)
class TableReport:
    """Summary of a table of a dataset; the fields are those of ``Report``."""

    relation: TableName
    table: TableName
    release: int
    checks: CheckReport
    loss: LossReport | None
    label_loss: Mapping[str, float]
    proofs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """Combined proofs of linked tables, and a summary of each table."""

    tables: tuple[TableReport, ...]
    confidential: str | None = CONFIDENTIAL


@dataclass(frozen=True, slots=True)
class SignOff:
    """What a person signs for a release, without figures of the source.

    approval: of the version of the policy, with the taxonomies of the release; None if the version
    is unknown, as an older dbanon published; has_options: whether options changed that policy;
    risks: what remains, in five sentences; refreshed_at: when the next refresh is due, if any.
    """

    relation: TableName
    table: TableName
    release: int
    kind: ReleaseKind
    published_at: datetime | None
    published_by: str | None
    policy: Policy
    approval: Approval | None
    has_options: bool
    checks: CheckReport
    risks: tuple[str, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    proofs: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    refreshed_at: datetime | None = None

    @property
    def approved_in_words(self) -> str:
        """Who approved what was published."""
        if self.approval is None:
            return "by nobody: the version of its policy is not recorded"
        if self.has_options:
            return "by nobody: options changed the stored policy"
        by, at = self.approval.by, self.approval.at
        if by is None or at is None:
            return "by nobody"
        is_late = self.published_at is not None and at > self.published_at
        late = "by nobody when it was published; later " if is_late else ""
        return f"{late}by {by}, {at:%Y-%m-%d %H:%M %Z}"

    @property
    def until_in_words(self) -> str:
        """How long the release is served."""
        if self.refreshed_at is not None:
            return f"until the next refresh, due {self.refreshed_at:%Y-%m-%d %H:%M %Z}"
        return "until it is published again or withdrawn; no refresh is scheduled"


class Change(StrEnum):
    """Meaning of a changed figure."""

    RISKIER = "riskier"
    SAFER = "safer"
    LESS_USEFUL = "less useful"
    MORE_USEFUL = "more useful"


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of two reports, None if missing.

    words: its name, None if it only accompanies others; change: None if small or neutral; is_share:
    in [0, 1], or a share above 1.
    """

    figure: str
    before: float | None
    now: float | None
    words: str | None = None
    change: Change | None = None
    is_share: bool = False

    @property
    def apart(self) -> float:
        """Relative change, 1 if one report lacks the figure."""
        if self.before is None or self.now is None:
            return 1.0
        return abs(self.now - self.before) / max(abs(self.before), abs(self.now))
