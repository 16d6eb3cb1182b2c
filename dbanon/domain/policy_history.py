"""What became of the policies of a table, and how two of them differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableName


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A stored policy: since when, and the relations that serve a release by it."""

    policy: Policy
    updated_at: datetime
    served_by: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """A policy as it was stored at some time, as a document; None when it was dropped.

    ``version`` counts those of one table and name. ``stored_by`` is None for what was stored
    before there was a history.
    """

    name: str
    version: int
    document: Mapping[str, object] | None
    stored_at: datetime
    stored_by: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A key that two policies do not share, with its value in each, None where there is none."""

    key: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a policy: it was stored, dropped, or published by.

    ``changes`` is what storing it changed. ``release`` and ``relation`` are those of a publication.
    """

    at: datetime
    by: str | None
    policy: str
    deed: str
    version: int | None = None
    changes: tuple[Difference, ...] = ()
    release: int | None = None
    relation: TableName | None = None
