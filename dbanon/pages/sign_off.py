"""The page that a person signs for a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.messages import version_in_words
from dbanon.domain.release import Verdict
from dbanon.pages import files
from dbanon.pages.figures import models, number
from dbanon.pages.rendering import FIGURE, WORDS, Table, rendered, tabled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dbanon.domain.report import SignOff

_MOST = 8  # checks that fit on the page


def write(found: SignOff, path: Path) -> None:
    """Write the page; equal releases give equal files."""
    files.write(render(found).encode(), path, files.PAGE)


def render(found: SignOff) -> str:
    """Return the page as text."""
    return rendered("sign_off.html", **values_of(found))


def values_of(found: SignOff) -> dict[str, object]:
    """Return what the template of the page shows."""
    return {
        "found": found,
        "facts": list(facts(found)),
        "checks": _checks(found),
        "more": max(len(found.checks.results) - _MOST, 0),
    }


def facts(found: SignOff) -> Iterator[tuple[str, str]]:
    """Yield titles and texts: what is published, by which policy, how proved, for whom."""
    published = "" if found.published_at is None else f", {found.published_at:%Y-%m-%d %H:%M %Z}"
    kind = "a live view" if found.kind.is_live else "a copy"
    yield "published", f"{found.relation}, {kind} of {found.table}: {', '.join(found.columns)}"
    yield "release", f"{found.release} by {found.published_by}{published}"
    approval, version = found.approval, ""
    if approval is not None:
        version = f", {version_in_words(approval)}"
    yield "policy", f"{found.policy.name}{version}: {models(found.policy.models)}"
    yield "approved", found.approved_in_words
    verdict = found.checks.verdict
    yield "proved", f"{verdict}: counted again by the database on the published relation"
    yield "readers", ", ".join(found.readers) or "only its owner"
    yield "until", found.until_in_words
    if found.policy.erase_within is not None:
        yield "deleted persons", f"withdrawn within {found.policy.erase_within}"


def _checks(found: SignOff) -> Table:
    """Return the checks that failed, then the others, as many as fit."""
    results = sorted(found.checks.results, key=lambda one: one.verdict is Verdict.PASSED)
    return tabled(
        "Proved by the database",
        results[:_MOST],
        ("model", WORDS, lambda one: one.model),
        ("column", WORDS, lambda one: one.column or "-"),
        ("required", FIGURE, lambda one: number(one.required)),
        ("achieved", FIGURE, lambda one: number(one.achieved)),
        ("classes", FIGURE, lambda one: number(one.classes)),
        ("rows", FIGURE, lambda one: number(one.n_rows)),
        ("verdict", WORDS, lambda one: one.verdict),
    )
