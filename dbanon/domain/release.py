"""What was published."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    published, of a live view one of its definition, None for what older versions published.
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
    that are no longer published, as members of them left; waiting: rows that were never published
    and are too few or too much alike for a class; withheld: rows of withdrawn classes; deferred:
    rows that are gone from the table and still published; moved: rows of withdrawn classes that
    form others.
    """

    kept: int
    births: int
    withdrawn: int
    waiting: int
    withheld: int
    deferred: int = 0
    moved: int = 0

    @property
    def shown(self) -> int:
        """How many rows are published now."""
        return self.kept + self.births + self.deferred + self.moved

    def __str__(self) -> str:
        """Return the counts in one clause."""
        classes = "class" if self.withdrawn == 1 else "classes"
        return (
            f"{self.kept:,} rows as before, {self.births:,} new, {self.withdrawn:,} {classes}"
            f" withdrawn, of which {self.moved:,} rows form others; {self.waiting:,} rows wait,"
            f" {self.withheld:,} are withheld, {self.deferred:,} are shown though they are gone"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Entry):
    """One line of the ledger.

    ``policy`` is the policy in force, command-line overrides included; ``overrides`` are those
    the command line gave, so that a refresh repeats them; ``taxonomies`` the versions used;
    ``fingerprint`` tells whether the source has changed since; ``earlier`` how many releases of the
    table came before, with which a reader may compare this one. ``warnings`` is what to think about
    again, ``composition`` what all releases of the table together reveal; both are reported when it
    is published and not kept.
    ``created_at`` and ``created_by`` are None until the ledger has it.
    """

    policy: Policy
    seed: int
    checks: CheckReport
    loss: LossReport
    fingerprint: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    taxonomies: Mapping[str, int] = field(default_factory=dict)
    earlier: int = 0
    created_at: datetime | None = None
    created_by: str | None = None
    warnings: tuple[Caution, ...] = field(default=(), compare=False)
    composition: Composition | None = field(default=None, compare=False)
