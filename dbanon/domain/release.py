"""Releases, and their relation to earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dbanon.domain.errors import DbanonError
from dbanon.domain.messages import advice_on
from dbanon.domain.notices import Notice, Topic, releases_in_words
from dbanon.domain.policy import DEFAULT_NAME, K_ANONYMITY, Policy
from dbanon.domain.table import UNPRINTED, TableName, quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.policy_warning import PolicyWarning


class ExportFormat(StrEnum):
    """The format of an exported file."""

    PARQUET = "parquet"
    CSV = "csv"


class Verdict(StrEnum):
    """Result of one check; an empty relation is not checked, never passed."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One model on one relation, as counted by the database.

    ``column`` is None for k-anonymity; ``achieved``: by the worst class, None if unchecked.
    """

    model: str
    column: str | None
    required: float
    achieved: float | None
    classes: int
    failing_classes: int
    n_rows: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The check of every model of a release, on the relation that is served."""

    relation: TableName
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """True if something was checked and everything passed."""
        return self.verdict is Verdict.PASSED

    @property
    def verdict(self) -> Verdict:
        """Failed if any check failed, passed only if all models were checked."""
        found = {result.verdict for result in self.results}
        if Verdict.FAILED in found:
            return Verdict.FAILED
        return Verdict.PASSED if found == {Verdict.PASSED} else Verdict.NOT_CHECKED

    @property
    def of_k(self) -> CheckResult | None:
        """The check of k by rows, None if there is none."""
        return next((r for r in self.results if (r.model, r.column) == (K_ANONYMITY, None)), None)

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Required and achieved value of each failed model."""
        return tuple(
            f"{result.model}{f' of {result.column}' if result.column else ''} requires"
            f" {result.required:g}, the worst class has {result.achieved:g}"
            f" ({result.failing_classes:,} of {result.classes:,} classes fail)"
            for result in self.results
            if result.verdict is Verdict.FAILED
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """A later check of a release in the ledger; ``reason``: why it did not pass."""

    release: int
    verdict: Verdict
    results: tuple[CheckResult, ...]
    reason: str | None
    verified_at: datetime
    verified_by: str


class CheckFailed(DbanonError):
    """The relation does not meet its guarantees."""

    exit_code = 3

    def __init__(self, message: str, report: CheckReport, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.report = report


OTHER_READERS = "if the audience has never seen these releases: --new-series --recipients-changed"
"""The way on where releases may not be compared: a series of their own."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """Persons with few possible values of a sensitive column, by the classes of two releases.

    ``below``: fewer than ``required`` values are in both classes; ``to_one``: just one.
    """

    column: str
    required: int
    below: int
    to_one: int


@dataclass(frozen=True, slots=True)
class Against:
    """A release compared with an earlier one.

    persons: of either; in_both: of both; smallest: least number of persons in the same classes of
    both, or in the same class of one but missing in the other; below: persons in sets of fewer than
    ``required``.
    """

    release: int
    relation: TableName
    persons: int
    in_both: int
    required: int
    smallest: int
    below: int
    exposures: tuple[Exposure, ...]

    @property
    def severity(self) -> tuple[int, int, int]:
        """Sort key: persons left with one value, with few values, among few persons."""
        to_one = max((found.to_one for found in self.exposures), default=0)
        return to_one, max((found.below for found in self.exposures), default=0), self.below

    @property
    def findings(self) -> tuple[str, ...]:
        """Small groups, and the column whose values are known of most persons, a line each."""
        at, lines = f"compared with release {self.release}", []
        if self.below:
            lines.append(f"{at}: {self._count(self.below)} persons below k = {self.required}")
        worst = max(self.exposures, key=lambda one: (one.to_one, one.below), default=None)
        if worst is not None and worst.below:
            below = self._count(worst.below)
            lines.append(f"{at}: {below} persons below l = {worst.required} of {worst.column}")
        if worst is not None and worst.to_one:
            lines.append(f"{at}: {worst.column} of {self._count(worst.to_one)} persons is known")
        return tuple(lines)

    def _count(self, persons: int) -> str:
        """Return a number of persons, without one below k."""
        return f"{persons:,}" if persons >= self.required else f"fewer than {self.required:,}"


@dataclass(frozen=True, slots=True)
class CellResult:
    """A model on the cells (persons in the same classes of every release), by one's values."""

    release: int
    relation: TableName
    result: CheckResult

    @property
    def counted(self) -> tuple[int, str, str | None]:
        """Key of the result; k is counted for all releases together."""
        number = 0 if self.result.model == K_ANONYMITY else self.release
        return number, self.result.model, self.result.column


@dataclass(frozen=True, slots=True)
class Composition:
    """Combined disclosure of all releases of a table.

    ``releases`` were compared; ``unknown`` could not be: published live, by an older version or
    with other subject columns, or their membership is lost; ``live`` of these are live views.
    ``altered``: the stored membership has changed since the last of them was published.
    ``against``: the newest release compared with every earlier one of any relation. ``beside``:
    other tables of its dataset, if assessed together. ``small``: cells with fewer persons than the
    greatest k. A cell must meet the least k of the releases that show its persons, and no release
    may add to the disclosure of the others.
    """

    table: TableName
    persons: int
    releases: tuple[int, ...]
    unknown: tuple[int, ...]
    results: tuple[CellResult, ...]
    against: tuple[Against, ...]
    altered: tuple[int, ...] = ()
    live: tuple[int, ...] = ()
    beside: tuple[TableName, ...] = ()
    small: int = 0
    no_results: ClassVar[str] = "nothing to compare: persons are stored of one release at most"

    @property
    def failed(self) -> tuple[CellResult, ...]:
        """Failed models of cells."""
        return tuple(one for one in self.results if one.result.verdict is Verdict.FAILED)

    @property
    def holds(self) -> bool:
        """True if everything holds for all releases but live views, and none was altered."""
        return not (self.failed or self._lost or self.altered)

    @property
    def _lost(self) -> tuple[int, ...]:
        """Unknown releases that are not live views, so their membership should be stored."""
        return tuple(number for number in self.unknown if number not in self.live)

    def is_worse_than(self, before: Composition) -> bool:
        """Return True if more cells are small or fail a model than before, including new models."""
        former = {one.counted: one.result.failing_classes for one in before.results}
        return self.small > before.small or any(
            one.result.failing_classes > former.get(one.counted, 0) for one in self.results
        )

    def reasons_against(self, before: Composition) -> tuple[str, ...]:
        """Return why the newest release adds to the disclosure of the earlier ones, a line each."""
        more = self.small - before.small
        found = tuple(notice.message for notice in self.warnings)
        if more <= 0:
            return found
        groups = "group is" if more == 1 else "groups are"
        others = f"compared with the other releases of {self.table}"
        return (f"{others}, {more:,} more {groups} smaller than k", *found)

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """Problems, a line each, the worst pair of releases first."""
        found: list[Notice] = []
        if self.failed:
            worst = max(self.against, key=lambda one: (one.severity, one.release), default=None)
            lines = () if worst is None else worst.findings
            found = [Notice(Topic.COMBINED, line) for line in (*lines, self._of_all)]
        for topic, numbers, text in (
            (Topic.NOT_COMPARED, self._lost, "not compared, record of persons lost"),
            (Topic.NOT_COMPARED, self.live, "not compared, live view"),
            (Topic.ALTERED_HISTORY, self.altered, "record of persons altered"),
        ):
            if numbers:
                found.append(Notice(topic, f"{releases_in_words(numbers)}: {text}"))
        return tuple(found)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Problems, and a limit that is none."""
        return (*self.warnings, *filter(None, [self.note]))

    @property
    def note(self) -> Notice | None:
        """Limit of a larger k for recipients of releases with weaker guarantees, if any."""
        of_k = [one.result for one in self.results if one.result.model == K_ANONYMITY]
        if not self.small or any(result.failing_classes for result in of_k):
            return None
        least = min(result.achieved or 0 for result in of_k)
        message = f"releases of {self.table} promise different k; together k = {least:g}"
        return Notice(Topic.DIFFERENT_K, message)

    @property
    def _of_all(self) -> str:
        worst = max((one.result for one in self.failed), key=lambda result: result.failing_classes)
        return (
            f"taken together, {releases_in_words(self.releases)} fail their models"
            f" ({worst.failing_classes:,} cells)"
        )


class RevealsMore(CheckFailed):
    """The newest release would add to the disclosure of the others."""


def require_safe(found: Iterable[Composition]) -> None:
    """Raise CheckFailed if releases together disclose more than each guarantees, or may do so."""
    for one in found:
        if one.warnings:
            raise _unsafe(one)


def require_held(found: Iterable[Composition]) -> None:
    """Raise CheckFailed if releases (but live views) break a guarantee, or cannot be counted."""
    for one in found:
        if not one.holds:
            raise _unsafe(one)


def _unsafe(found: Composition) -> CheckFailed:
    return CheckFailed(
        "\n  ".join(one.message for one in found.warnings),
        CheckReport(found.table, tuple(cell.result for cell in found.failed)),
        hint=command("dbanon history", found.table),
    )


class ReleaseKind(StrEnum):
    """Storage of a release: a private copy, or a view of the live source."""

    TABLE = "table"
    VIEW = "view"

    @property
    def is_live(self) -> bool:
        """True for a view of the source, which guards watch; a copy is sealed."""
        return self is ReleaseKind.VIEW


class Sums(NamedTuple):
    """What the rows of a private copy add up to, in any order, or by how much that has changed.

    cells, numbers: hashes of the rows without and with the class number; writers: digest of the
    transactions that wrote them, "" for a change.
    """

    rows: int
    cells: int
    numbers: int
    writers: str = ""

    def plus(self, gained: Sums) -> Sums:
        """Add a change."""
        cells, numbers = self.cells + gained.cells, self.numbers + gained.numbers
        return Sums(self.rows + gained.rows, cells, numbers)


class Spread(NamedTuple):
    """Places of rows that have every value of some columns; values: the number of these."""

    columns: list[str]
    values: int
    places: str


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source when a release was last compared with it, to find what changed since then.

    facts: digest of its storage and columns; snapshot: of that transaction; rows: that meet the
    policy's conditions; content: digest of them, or a random name; places: number of the table with
    the place of each row, None without one; key: of the hashes in it; changed: rows since all were
    read; ncp: of a new search then; copy: what the rows of the release add up to; spread: of
    columns whose scales or warnings need all values; pages: of a part, and the rows of each part.
    """

    facts: str
    snapshot: str
    rows: int
    content: str
    places: int | None = None
    key: str | None = None
    changed: int = 0
    ncp: float | None = None
    copy: Sums | None = None
    spread: Spread | None = None
    pages: str | None = None

    def placed(self, places: int, key: object) -> SourceState:
        """Return the state with the places of all rows, which were just read."""
        return replace(self, places=places, key=str(key), changed=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Origin of a served release, all that is needed to serve another instead.

    ``served``: the release is served now. ``content``: digest of the publication, for a live view
    of its definition, None if lost. ``data_id``: number of its private tables, the release they
    were made for. ``policy_name``: of the table's policy; ``dataset``: tables published together,
    including itself. ``source_state``: of the source, None if it is no plain table.
    """

    id: int
    table: TableName
    relation: TableName
    kind: ReleaseKind
    served: bool = True
    content: str | None = None
    data_id: int = 0
    policy_name: str = DEFAULT_NAME
    dataset: tuple[str, ...] = ()
    source_state: SourceState | None = field(default=None, metadata=UNPRINTED)

    @property
    def sources(self) -> tuple[TableName, ...]:
        """The tables whose data it contains."""
        return tuple(map(TableName.parse, self.dataset)) or (self.table,)

    @property
    def membership_id(self) -> int:
        """The number of its membership tables, which releases of a live view share."""
        return self.data_id if self.kind.is_live else self.id


_NAMED = 3  # columns, those with the most former values


@dataclass(frozen=True, slots=True)
class Delta:
    """Changes of a release in the next one, made by incremental refresh.

    Rows: kept: unchanged; inserted: of new classes; left: withdrawn after deletion; waiting: of
    persons who were never published; withheld: of persons that were published and are not;
    deferred: deleted but still published; changed: with sensitive values that differ from the
    published ones; later: inserted for published persons, unpublished; overdue: those of ``left``
    published until the deadline. withdrawn: classes; due: deadline of the first of ``deferred``;
    bound: rows in classes with one of ``deferred``, which the deadline withdraws, 0 without one;
    days: until the next pool, at the rate at which new persons came;
    former: share of published rows whose value differs by now, by sensitive column; pending:
    persons of ``waiting``; pool: number of them that the next pool needs, None if no
    number suffices; failed: whether a pool did not meet the models as a whole, so that it is not
    published.
    """

    kept: int
    inserted: int = 0
    withdrawn: int = 0
    waiting: int = 0
    withheld: int = 0
    deferred: int = 0
    left: int = 0
    changed: int = 0
    later: int = 0
    overdue: int = 0
    due: datetime | None = None
    pending: int = 0
    pool: int | None = None
    failed: bool = False
    bound: int = 0
    days: float | None = field(default=None, compare=False)
    former: Mapping[str, float] = field(default_factory=dict)

    @property
    def shown(self) -> int:
        """Number of published rows."""
        return self.kept + self.inserted + self.deferred

    def awaited(self, past: timedelta | None) -> Delta:
        """Return the counts with the days until the next pool; past: since the last one."""
        lacking = 0 if self.pool is None or self.inserted else self.pool - self.pending
        if past is None or lacking <= 0 or not self.pending:
            return self
        return replace(self, days=past / timedelta(days=1) * lacking / self.pending)

    @property
    def is_same(self) -> bool:
        """True if everything published was published before."""
        return not (self.inserted or self.withdrawn)

    def __str__(self) -> str:
        """Return the nonzero counts in one clause."""
        classes = "class" if self.withdrawn == 1 else "classes"
        until = f", the first of them until {self.due:%Y-%m-%d}" if self.due else ""
        until += f", in classes of {self.bound:,} rows" if self.bound else ""
        parts = (
            (self.inserted, f"{self.inserted:,} new"),
            (self.withdrawn, f"{self.withdrawn:,} {classes} withdrawn"),
            (self.left, f"{self.left:,} of their rows deleted"),
            (self.overdue, f"{self.overdue:,} of these overdue"),
            (self.waiting, f"{self.waiting:,} pending ({self._pool})"),
            (self.withheld, f"{self.withheld:,} withheld"),
            (self.deferred, f"{self.deferred:,} published although deleted{until}"),
            (self.changed, f"{self.changed:,} with former values{self._columns}"),
            (self.later, f"{self.later:,} inserted for published persons, unpublished"),
        )
        return ", ".join([f"{self.kept:,} rows unchanged", *(text for n, text in parts if n)])

    @property
    def _columns(self) -> str:
        most = sorted(self.former, key=lambda name: (-self.former[name], name))[:_NAMED]
        listed = ", ".join(f"{quote_identifier(name)} {self.former[name]:.1%}" for name in most)
        return f" ({listed})" if most else ""

    @property
    def staleness(self) -> str | None:
        """The share of rows with former values, in words; None if there are none."""
        found = f"{self.stale_share} of the rows show former values{self._columns}"
        return found if self.changed else None

    @property
    def stale_share(self) -> str:
        """The share of rows with former values."""
        return f"{self.changed / max(self.shown, 1):.1%}"

    @property
    def _pool(self) -> str:
        if self.pool is None:
            return "the published values are too few for a pool of any size"
        pool = f"pool {self.pending:,} of {self.pool:,}"
        pool += f", in about {self.days:,.0f} days" if self.days and self.days >= 1 else ""
        return f"all of them together do not meet the models; {pool}" if self.failed else pool


@dataclass(frozen=True, slots=True)
class Published:
    """The published values of a table, of the classes with some kept values.

    kept_values: of the kept columns; counts: how often each value of a sensitive column
    is published; persons: their number.
    """

    kept_values: Mapping[str, str | None]
    counts: Mapping[str, Sequence[int]]
    persons: int


@dataclass(frozen=True, slots=True)
class Retained:
    """Deleted persons that a relation still publishes.

    overdue: rows beyond the policy's deadline; since: first refresh that missed one of the rows;
    due: deadline of the first, if any.
    """

    relation: TableName
    rows: int
    overdue: int = 0
    since: datetime | None = None
    due: datetime | None = None
    failed: int = 0

    def __str__(self) -> str:
        """Return the counts in one clause."""
        text = f"{self.rows:,} rows of deleted persons are published"
        if self.since is not None:
            text += f", the first missing since {self.since:%Y-%m-%d}"
        if self.due is not None:
            text += f" and due on {self.due:%Y-%m-%d}"
        text += f"; {self.overdue:,} are overdue" if self.overdue else ""
        failed = f"a pool of {self.failed:,} new persons did not meet the models as a whole"
        found = ((self.rows, text), (self.failed, failed))
        return "; ".join(part for n, part in found if n)


@dataclass(frozen=True, slots=True)
class GroupReuse:
    """A release made of atoms: sets of persons in the same classes of all earlier releases.

    atoms: published atoms, in classes of one or several; kept: their rows; inserted: rows never
    published, in classes of their own; waiting: those too few or too similar for a class; withheld:
    rows of unpublished atoms, because of a deletion, or because they fail alone for a new column;
    frozen: rows of ``kept`` with changed values.
    """

    atoms: int
    kept: int
    inserted: int
    waiting: int
    withheld: int
    frozen: int

    @property
    def growth(self) -> Delta:
        """The counts as those of an incremental refresh."""
        return Delta(
            self.kept,
            inserted=self.inserted,
            waiting=self.waiting,
            withheld=self.withheld,
            changed=self.frozen,
        )

    def of_all(self, first: GroupReuse) -> GroupReuse:
        """Return the counts, including the rows suppressed since ``first``."""
        waiting = first.inserted + first.waiting - self.inserted
        withheld = first.kept + first.withheld - self.kept
        return replace(self, waiting=waiting, withheld=withheld)

    def __str__(self) -> str:
        """Return the nonzero counts in one clause."""
        parts = (
            (self.inserted, f"{self.inserted:,} new"),
            (self.waiting, f"{self.waiting:,} pending"),
            (self.withheld, f"{self.withheld:,} withheld"),
            (self.frozen, f"{self.frozen:,} with former values"),
        )
        kept = f"{self.kept:,} rows in the {self.atoms:,} groups of earlier releases"
        return ", ".join([kept, *(text for n, text in parts if n)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Entry):
    """One line of the ledger.

    ``policy``: in force, including the command line's ``overrides``, which a refresh repeats;
    ``taxonomies``: versions used; ``fingerprint``: detects changes of the source; ``compared``: the
    fingerprint at the last refresh without a publication, if any; ``earlier``: number of earlier
    releases of the table, with which this one can be compared; ``policy_version``: number of the
    stored version, None if an older dbanon published. ``warnings``, ``composition``
    (combined disclosure of all releases) and ``sharing`` (reuse of published groups) are reported
    on publication but not stored. ``created_at`` and ``created_by`` are None until it is in the
    ledger. ``growth``: changes since the release before, at the last refresh, if its classes are
    preserved.
    """

    policy: Policy
    seed: int
    checks: CheckReport
    loss: LossReport
    fingerprint: str = field(metadata=UNPRINTED)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    taxonomies: Mapping[str, int] = field(default_factory=dict)
    compared: str | None = field(default=None, metadata=UNPRINTED)
    growth: Delta | None = None
    policy_version: int | None = None
    earlier: int = 0
    created_at: datetime | None = None
    created_by: str | None = None
    warnings: tuple[PolicyWarning, ...] = field(default=(), compare=False)
    composition: Composition | None = field(default=None, compare=False)
    sharing: GroupReuse | None = field(default=None, compare=False)

    @property
    def advice(self) -> str | None:
        """What would lose less; None for preserved or reused classes, which are not to change."""
        is_search = self.growth is None and self.sharing is None
        return advice_on(self.loss, self.policy) if is_search else None

    @property
    def notices(self) -> tuple[PolicyWarning | Notice, ...]:
        """All warnings of a publication: about all releases together, and about its policy."""
        together = () if self.composition is None else self.composition.notices
        return (*together, *self.warnings)

    def stale_beyond(self, most: float | None) -> str | None:
        """Return a warning if more rows show former values than a policy allows."""
        growth = self.growth
        if most is None or growth is None or growth.changed <= most * growth.shown:
            return None
        return f"{growth.stale_share} of rows show former values; max_stale is {most:g}"


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in the ledger of a table, by its newest release and by time."""

    release: int
    at: datetime

    def precedes(self, release: Release) -> bool:
        """Return True if a release shows rows of a later time, as far as known."""
        begun = release.created_at
        return release.id > self.release and begun is not None and begun >= self.at


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """Noisy counts of the persons of a table, by combination of values.

    by: combined columns; cells: number of combinations; epsilon: of these counts; spent: by all
    counts of the table, including these; within: bound of the error of 95 % of the counts; notes:
    for review.
    """

    relation: TableName
    table: TableName
    by: tuple[str, ...]
    cells: int
    epsilon: float
    spent: float
    budget: float
    within: int
    notes: tuple[Notice, ...] = ()
