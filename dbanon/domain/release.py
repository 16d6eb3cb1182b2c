"""What was published."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dbanon.domain.policy import DEFAULT_NAME
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.caution import Caution
    from dbanon.domain.checks import CheckReport
    from dbanon.domain.composition import Composition
    from dbanon.domain.policy import Policy


class ReleaseKind(StrEnum):
    """How a release is stored: a private copy, or a view of the live source."""

    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Where a release is served from, which is all that serving another in its place takes.

    ``served`` tells whether readers see this release now. ``content`` is a digest of what was
    published, of a live view one of its definition, None if the ledger has lost it.
    ``data_id`` is the number in the names of its private tables: that of the release they were made
    for. ``policy_name`` tells by which policy of the table it was published, and ``dataset``
    together with which tables, itself included.
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

    @property
    def sources(self) -> tuple[TableName, ...]:
        """The tables that it shows something of."""
        return tuple(map(TableName.parse, self.dataset)) or (self.table,)


class Leavers(StrEnum):
    """What becomes of a class, refreshed as a whole, when somebody of it is gone from the table.

    It is withdrawn at once, or once k of it are gone; until then it is shown as it was.
    """

    RETIRE = "retire"
    DEFER = "defer"


@dataclass(frozen=True, slots=True)
class Growth:
    """What became of a release in the next one, when that was made class by class.

    kept: rows that stay as they were published; births: rows of new classes; withdrawn: classes
    that went; left: rows that went, as they are gone from the table; waiting: rows that were never
    published, and are too few, too much alike or too different for a class; withheld: rows of
    persons who were published and are not; deferred: rows that are gone from the table and still
    published; moved: rows of classes that went which form others; changed: rows whose sensitive
    values are others by now than those that are published; later: rows that came to persons who are
    published without them; overdue: rows of ``left`` that were shown for as long as the policy
    allows; due: when the first of ``deferred`` are to go.
    """

    kept: int
    births: int = 0
    withdrawn: int = 0
    waiting: int = 0
    withheld: int = 0
    deferred: int = 0
    moved: int = 0
    left: int = 0
    changed: int = 0
    later: int = 0
    overdue: int = 0
    due: datetime | None = None

    @property
    def shown(self) -> int:
        """How many rows are published now."""
        return self.kept + self.births + self.deferred + self.moved

    @property
    def is_same(self) -> bool:
        """Whether all that is published was before."""
        return not (self.births or self.moved or self.left or self.withdrawn)

    def __str__(self) -> str:
        """Return the counts in one clause, of what there is."""
        classes = "class" if self.withdrawn == 1 else "classes"
        until = f", the first of them until {self.due:%Y-%m-%d}" if self.due else ""
        parts = (
            (self.births, f"{self.births:,} new"),
            (self.moved, f"{self.moved:,} in other classes"),
            (self.left, f"{self.left:,} taken out, being gone"),
            (self.overdue, f"{self.overdue:,} of these as they were due"),
            (self.withdrawn, f"{self.withdrawn:,} {classes} withdrawn"),
            (self.waiting, f"{self.waiting:,} wait for others like them"),
            (self.withheld, f"{self.withheld:,} withheld, whose classes only other releases show"),
            (self.deferred, f"{self.deferred:,} shown though they are gone{until}"),
            (self.changed, f"{self.changed:,} shown with former values"),
            (self.later, f"{self.later:,} not shown, as their persons were published before"),
        )
        return ", ".join([f"{self.kept:,} rows as before", *(text for n, text in parts if n)])


@dataclass(frozen=True, slots=True)
class Lingering:
    """Those whom a relation shows though they are gone from the table.

    overdue: how many of the rows are shown for longer than the policy allows; since: the first
    refresh that missed one of them; due: when the first of them is to go, None if nothing says.
    """

    relation: TableName
    rows: int
    overdue: int = 0
    since: datetime | None = None
    due: datetime | None = None

    def __str__(self) -> str:
        """Return the counts in one clause."""
        text = f"{self.rows:,} rows are shown of persons who are gone"
        if self.since is not None:
            text += f", the first of them missed on {self.since:%Y-%m-%d}"
        if self.due is not None:
            text += f" and due on {self.due:%Y-%m-%d}"
        return text + (f"; {self.overdue:,} are overdue" if self.overdue else "")


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a release is made of atoms: those who were in the same classes of all releases before.

    atoms: how many are shown, in classes of one or several; kept: their rows; births: rows that
    were never published and form classes of their own; waiting: those that are too few or too much
    alike for one; withheld: rows of atoms that are not shown, as somebody of them is gone or as
    they do not meet by themselves what is asked of a column that was never published; frozen: rows
    of ``kept`` whose values are others by now.
    """

    atoms: int
    kept: int
    births: int
    waiting: int
    withheld: int
    frozen: int

    def of_all(self, first: Sharing) -> Sharing:
        """Return the counts with the rows that were left out since ``first`` was counted."""
        waiting = first.births + first.waiting - self.births
        withheld = first.kept + first.withheld - self.kept
        return replace(self, waiting=waiting, withheld=withheld)

    def __str__(self) -> str:
        """Return the counts in one clause."""
        return (
            f"{self.kept:,} rows in whole groups of those published together before"
            f" ({self.atoms:,} of them), {self.births:,} new; {self.waiting:,} rows wait,"
            f" {self.withheld:,} are withheld, {self.frozen:,} are shown with the values of before"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Entry):
    """One line of the ledger.

    ``policy`` is the policy in force, command-line overrides included; ``overrides`` are those
    the command line gave, so that a refresh repeats them; ``taxonomies`` the versions used;
    ``fingerprint`` tells whether the source has changed since; ``compared`` whether it has since a
    refresh found nothing to publish, None if none did; ``earlier`` how many releases of the
    table came before, with which a reader may compare this one. ``warnings`` is what to think about
    again, ``composition`` what all releases of the table together reveal, ``sharing`` what became
    of those who were published before; all are reported when it is published and not kept.
    ``created_at`` and ``created_by`` are None until the ledger has it.
    """

    policy: Policy
    seed: int
    checks: CheckReport
    loss: LossReport
    fingerprint: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    taxonomies: Mapping[str, int] = field(default_factory=dict)
    compared: str | None = None
    earlier: int = 0
    created_at: datetime | None = None
    created_by: str | None = None
    warnings: tuple[Caution, ...] = field(default=(), compare=False)
    composition: Composition | None = field(default=None, compare=False)
    sharing: Sharing | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in the ledger of a table, by the number of its newest release and by the clock."""

    release: int
    at: datetime

    def precedes(self, release: Release) -> bool:
        """Whether a release is of rows as they were later than this, as far as both can tell."""
        begun = release.created_at
        return release.id > self.release and begun is not None and begun >= self.at


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """How many persons of a table have each combination of values, about.

    by: the columns that are combined; cells: how many combinations there are; epsilon: what these
    counts spend of the budget; spent: what all counts of the table have spent, these included;
    within: how far 95 % of the counts are from the truth at most; notes: what somebody should look
    at.
    """

    relation: TableName
    table: TableName
    by: tuple[str, ...]
    cells: int
    epsilon: float
    spent: float
    budget: float
    within: int
    notes: tuple[str, ...] = ()
