"""Warnings about releases, rights and metadata, which no policy acknowledges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbanon.domain.policy_warning import Explanation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Topic(StrEnum):
    """Subject of a warning that is not about a policy, for ``dbanon help``."""

    COMBINED = "combined"
    NOT_COMPARED = "not-compared"
    ALTERED_HISTORY = "altered-history"
    DIFFERENT_K = "different-k"
    STALE_VALUES = "stale-values"
    SLOW_REFRESH = "slow-refresh"
    TIME_LIMIT = "time-limit"
    INDIRECT_ACCESS = "indirect-access"
    REMAINING_ACCESS = "remaining-access"
    SET_ASIDE = "set-aside"
    DAMAGED = "damaged"
    MISSING_RIGHT = "missing-right"


NOTICES: Mapping[Topic, Explanation] = {
    Topic.COMBINED: Explanation(
        "several releases of a table, compared with each other, identify persons",
        "Each release keeps its promise alone. A reader of several of them finds persons in the"
        " same classes of all releases (cells); small cells, or cells with few sensitive values,"
        " disclose what each release hides.",
        "dbanon history TABLE shows all figures. dbanon refresh keeps classes comparable. For an"
        " audience that has none of these releases: --new-series --recipients-changed",
    ),
    Topic.NOT_COMPARED: Explanation(
        "the membership of a release is not stored: it is a live view, or the record is lost",
        "Releases before and after it were not compared with it. Together they may identify"
        " persons.",
        "publish with --as table; restore the schema dbanon if the record is lost",
    ),
    Topic.ALTERED_HISTORY: Explanation(
        "the stored membership of a release was changed after its publication",
        "Comparisons with this release may miss persons who are identified.",
        "dbanon doctor; restore the schema dbanon from a backup",
    ),
    Topic.DIFFERENT_K: Explanation(
        "releases of a table promise different k",
        "Each release keeps its promise alone. A reader of several of them has the least k only.",
        "publish with the same k for all readers; dbanon history TABLE shows the cells",
    ),
    Topic.STALE_VALUES: Explanation(
        "more rows than max_stale show values that have changed in the table since",
        "None for persons; readers see former values. Rows keep them, as a change of one value in"
        " one class would identify the person.",
        "start a new series for an audience that has none of these releases (--new-series"
        " --recipients-changed), or wait until classes are withdrawn",
    ),
    Topic.SLOW_REFRESH: Explanation(
        "a refresh publishes new persons in pools, and a pool is large for this table",
        "None for persons; new persons are published late, or never.",
        "a smaller k or l, or coarser sensitive values",
    ),
    Topic.TIME_LIMIT: Explanation(
        "the time budget of a report ended before this section",
        "The report says nothing of the risk or utility that the section measures.",
        "dbanon report with a larger --within",
    ),
    Topic.INDIRECT_ACCESS: Explanation(
        "a reader may run code that seems to read private data with the rights of another role",
        "If it does, the reader sees what the release hides.",
        "dbanon doctor lists each path with its remedy; --json prints them here",
    ),
    Topic.REMAINING_ACCESS: Explanation(
        "a role keeps a right after dbanon revoke",
        "It may still read the relation, as a member of another role or through PUBLIC.",
        "dbanon grant and dbanon revoke for that role; \\dp RELATION in psql lists rights",
    ),
    Topic.SET_ASIDE: Explanation(
        "a relation got other columns, and relations that depend on its former state are empty",
        "None for persons; queries on these relations return nothing.",
        "create them again from the new relation, and drop the old ones",
    ),
    Topic.DAMAGED: Explanation(
        "a part of the metadata is lost and cannot be rebuilt",
        "What it recorded is unknown: releases are not checked or compared, or counts not paid.",
        "dbanon doctor; restore the schema dbanon from a backup",
    ),
    Topic.MISSING_RIGHT: Explanation(
        "the role that publishes needs a right that only the owner of the database can grant",
        "None for persons; dbanon publish will fail.",
        "the owner of the database runs the statement of the warning",
    ),
}
"""What each of these warnings means."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning that no policy acknowledges; hint: what to do, if the explanation is too general.

    With names of up to 20 characters, its line has at most 100.
    """

    topic: Topic
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """Return the message with its code."""
        return f"{self.message} [{self.topic}]"


_LISTED = 3


def releases_in_words(numbers: Sequence[int]) -> str:
    """Return the numbers of at most three releases, otherwise how many there are."""
    if len(numbers) > _LISTED:
        return f"{len(numbers)} releases"
    return f"release{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
