"""What a publication risks and what it is worth, in figures that name nobody.

Shares are in [0, 1]. The report of a steward has exact figures of the source. A public one has
none: it is a function of the release, its policy and its entry in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.domain.policy import K_ANONYMITY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.caution import Caution
    from dbanon.domain.checks import CheckReport, CheckResult
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableName


CONFIDENTIAL = "Confidential: contains figures of the source"
"""How a report begins that is not to be passed on with the release."""

BEYOND = (" or less", " or more")
"""How the first and the last bin of a distribution end that also hold what lies beyond them."""


class Attacker(StrEnum):
    """Who tries to find a person, as El Emam and Dankar (JAMIA 2008) tell them apart.

    The prosecutor knows that the person is in the relation, the journalist that somebody of a
    population is, and the marketer wants as many persons as can be had.
    """

    PROSECUTOR = "prosecutor"
    JOURNALIST = "journalist"
    MARKETER = "marketer"


@dataclass(frozen=True, slots=True)
class Reidentification:
    """How likely an attacker finds the record of a person.

    highest: of the record that is easiest to find; average: over records; above: the share of
    records found with a probability over ``threshold``; basis: what the records were counted
    among: the relation, a population table, or the estimator of a population; is_bound: whether
    ``average`` and ``above`` are upper bounds, since the persons of each class are not known.
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
    """The classes of ``least`` to ``most`` rows, and their rows; the last band has no end."""

    least: int
    most: int | None
    classes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What the classes say of a sensitive column beyond what the whole relation says.

    highest: the greatest posterior belief in a value; lift: the greatest ratio of a posterior to
    its prior; guessed: the share of rows whose value is the most frequent one of their class,
    baseline: of the relation; positive: the share of rows with a value believed with more than
    1 - delta that was not believed before, negative: with one believed with less than epsilon that
    was; diversity: the least exponential of the entropy of a class; closeness: the greatest
    distance of a class from the relation, as t-closeness has it.
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
    """How much of a population of ``population`` persons is unique, by an estimator.

    share: of the population; sampled: the fraction of it that the source is.
    """

    estimator: str
    population: int
    sampled: float
    share: float


@dataclass(frozen=True, slots=True)
class UniqueSet:
    """Columns that tell rows apart which no fewer of them do; rows: how many, of those sampled."""

    columns: tuple[str, ...]
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class Naming:
    """Of how many persons a value was named as the only one possible, and of how many rightly.

    usual: of how many the most frequent value of the relation would have been right.
    """

    persons: int
    right: int
    usual: int


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on sampled persons.

    candidates: the median number of rows that the attacker is left with; expected: the greatest
    rate that the models of the release admit, None where they admit any; rate: the share of
    persons of whom the attacker was right, low and high: its confidence interval of 95 %;
    baseline: the rate of somebody who guesses without the release; named: None of attacks that name
    no values.
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
        """Whether it is right more often than a guesser, and than a model admits, if any does."""
        return self.rate > max(self.baseline, self.expected or 0.0)


@dataclass(frozen=True, slots=True)
class Distribution:
    """How often the values of a column are in the source and in what is published.

    bins: what the release itself shows, or a round grid; distance: total variation over these;
    shift: by which share of all bins a row moves on average, the earth
    mover's distance, None where bins have no order.
    """

    column: str
    bins: tuple[str, ...]
    source: tuple[float, ...]
    published: tuple[float, ...]
    distance: float
    shift: float | None = None


@dataclass(frozen=True, slots=True)
class Association:
    """How columns go together: (d, d) each, correlation or Cramer's V, None where undefined.

    exact: the columns that every published row has as they are. Two of these go together as they do
    in the source, but for rows that are left out, so that nothing is measured of the release.
    """

    columns: tuple[str, ...]
    source: tuple[tuple[float | None, ...], ...]
    published: tuple[tuple[float | None, ...], ...]
    exact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryError:
    """How far off are the answers to random COUNT queries true of about a share of the rows.

    selectivity: that share; median, upper: of the relative errors, the median and the 95th
    percentile; imprecision, imprecision_upper: those of how many rows more than the true ones are
    in classes that overlap the query, relative to the true ones.
    """

    selectivity: float
    queries: int
    median: float
    upper: float
    imprecision: float
    imprecision_upper: float


@dataclass(frozen=True, slots=True)
class Classification:
    """How well a classifier predicts a column of the source: learned from it, from the release.

    accuracy, auc: (source, release, a guesser), tested on rows that none has learned from; rows:
    how many rows of each were learned from, tested: how many were predicted.
    """

    column: str
    classifier: str
    accuracy: tuple[float, float, float]
    auc: tuple[float, float, float] | None
    rows: int = 0
    tested: int = 0

    @property
    def is_predicted(self) -> bool:
        """Whether the source teaches more than a guesser knows, so that something can be lost."""
        return self.accuracy[0] > self.accuracy[2]

    @property
    def lost(self) -> float:
        """The accuracy that the source teaches and the release does not."""
        return max(self.accuracy[0] - self.accuracy[1], 0.0)

    @property
    def guessed_in_words(self) -> str:
        """What is said where nothing is predicted."""
        return (
            f"{self.column} cannot be predicted by {self.classifier} even from the source:"
            " a guesser is right as often, so no accuracy can be lost"
        )


@dataclass(frozen=True, slots=True)
class Risk:
    """All that is known of the risk of a relation.

    not_judged: the sensitive columns that are published masked, and how; not_tried: the attacks
    that could not be tried, and why; floors: the quasi-identifiers of which no value finer than
    these is known here, so that persons are unique by coarser values than those of the source.
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
        """By which values persons are unique."""
        if not self.floors:
            return "unique by exact values, as inspect counts them"
        floors = "; ".join(f"{name}: {floor}" for name, floor in self.floors.items())
        return (
            f"unique by values as the policy's floors leave them ({floors});"
            " inspect counts exact values, by which more are unique"
        )

    @property
    def masked_in_words(self) -> list[str]:
        """What is said of each sensitive column that is published masked."""
        return [f"not judged: {name} is masked by {how}" for name, how in self.not_judged.items()]

    @property
    def not_tried_in_words(self) -> list[str]:
        """What is said of the attacks that could not be tried, once of each reason."""
        reasons = dict.fromkeys(self.not_tried.values())
        return [
            f"not tried: {', '.join(n for n, why in self.not_tried.items() if why == reason)},"
            f" as {reason}"
            for reason in reasons
        ]


@dataclass(frozen=True, slots=True)
class Utility:
    """All that is known of the use of a relation."""

    distributions: tuple[Distribution, ...] = ()
    associations: tuple[Association, ...] = ()
    queries: tuple[QueryError, ...] = ()
    classifications: tuple[Classification, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """What is said of columns that nothing predicts."""
        return [one.guessed_in_words for one in self.classifications if not one.is_predicted]


@dataclass(frozen=True, slots=True)
class Report:
    """What somebody who answers for a relation must know of it.

    confidential: the heading of a report that has figures of the source, None of a public one;
    release is None of what is only planned; columns: the published type of each; taxonomies: the
    version of each; readers: the roles that it was granted to; statements: SQL that repeats the
    checks. loss, utility, warnings, sampled (how many rows of the source were looked at where not
    all were), left_out (what there was no time for) and hidden (how many rows were published that a
    live view shows no longer) are of the source; so are uniqueness, sets and attacks of ``risk``. A
    public report has in their place label_loss: the loss of each quasi-identifier whose labels say
    it; and proofs: in words, the models that only the publication could prove.
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
    warnings: tuple[Caution, ...] = ()
    sampled: int | None = None
    left_out: tuple[str, ...] = ()
    hidden: int = 0
    label_loss: Mapping[str, float] = field(default_factory=dict)
    proofs: tuple[str, ...] = ()
    confidential: str | None = CONFIDENTIAL

    @property
    def now(self) -> CheckResult | None:
        """The check of k, or the first one, which has the rows and classes that are shown now."""
        found = sorted(self.checks.results, key=lambda one: one.model != K_ANONYMITY)
        return found[0] if found else None

    @property
    def hiding(self) -> CheckResult | None:
        """The check of k, if it counted other rows than were published: a live view hides some."""
        return self.now if self.hidden else None


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table of a dataset in short; the fields are those of ``Report``."""

    relation: TableName
    table: TableName
    release: int
    checks: CheckReport
    loss: LossReport | None
    label_loss: Mapping[str, float]
    proofs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """What was proved of the persons of linked tables together, and each table in short."""

    tables: tuple[TableReport, ...]
    confidential: str | None = CONFIDENTIAL


class Change(StrEnum):
    """What it means that a figure is another one than before."""

    RISKIER = "riskier"
    SAFER = "safer"
    LESS_USEFUL = "less useful"
    MORE_USEFUL = "more useful"


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of two reports; None where a report does not have it.

    words: what it is, None of what only goes with other figures; change: None where that is small,
    or says nothing of risk or use; is_share: whether it is in [0, 1], or a share of more than all.
    """

    figure: str
    before: float | None
    now: float | None
    words: str | None = None
    change: Change | None = None
    is_share: bool = False

    @property
    def apart(self) -> float:
        """How much it changed, as a share of the greater figure: wholly, if one report lacks it."""
        if self.before is None or self.now is None:
            return 1.0
        return abs(self.now - self.before) / max(abs(self.before), abs(self.now))
