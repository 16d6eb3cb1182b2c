"""Utility figures as tables."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from dbanon.cli.notation import number, percent, strength
from dbanon.cli.pages.figures import FIGURE, ROOM, WORDS, Bar, Ink, Noted, Table
from dbanon.domain.wording import MEANINGS, Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.report import Association, Classification, Distribution, QueryError

_UNDEFINED = "undefined: a column does not vary, or its values are too many"
_KEPT = "published as they are: as in the source, but for rows left out"
_NOTES = ("", _UNDEFINED, _KEPT)  # in the order in which pairs are shown


def of_loss(loss: LossReport) -> Table:
    """Return the loss of each column and in total."""
    shares = [*loss.columns.items(), ("all (NCP)", loss.ncp)]
    if loss.weighted_ncp is not None:
        shares.append(("all, weighted (NCP)", loss.weighted_ncp))
    heads = {"quasi-identifier": WORDS, "lost": FIGURE, "from 0 to 100%": ROOM}
    rows = (
        (name, percent(share), (Bar(Ink.USE, share, percent(share)),)) for name, share in shares
    )
    caption = "Normalized certainty penalty: 0% is exact, 100% says nothing"
    return Table(caption, heads, tuple(rows))


def of_labels(lost: Mapping[str, float]) -> Table:
    """Return the loss by the labels of each column alone."""
    heads = {"quasi-identifier": WORDS, "lost": FIGURE, "from 0 to 100%": ROOM}
    rows = (
        (name, percent(share), (Bar(Ink.USE, share, percent(share)),))
        for name, share in lost.items()
    )
    caption = "Loss by labels: 0% are single values, 100% says nothing"
    return Table(caption, heads, tuple(rows))


def of_metrics(loss: LossReport) -> Table:
    """Return every other loss metric, with an explanation."""
    found = ((MEANINGS.get(name, Meaning(name, "")), value) for name, value in loss.metrics.items())
    heads = {"metric": WORDS, "value": FIGURE, "meaning": WORDS}
    rows = ((meaning.title, number(value), meaning.line) for meaning, value in found)
    return Table("The same loss as others measure it", heads, tuple(rows))


def of_distribution(found: Distribution) -> Table:
    """Return two bars for each bin; the longest fills the width."""
    most = max((*found.source, *found.published), default=0.0) or 1.0
    rows = (
        (
            label,
            percent(source),
            percent(published),
            (
                _scaled(Ink.SOURCE, source, most=most),
                _scaled(Ink.USE, published, most=most),
            ),
        )
        for label, source, published in zip(found.bins, found.source, found.published, strict=True)
    )
    heads = {"value": WORDS, "source": FIGURE, "published": FIGURE, "share of rows": ROOM}
    return Table(f"{found.column}: {percent(found.distance)} apart", heads, tuple(rows))


def _scaled(ink: Ink, share: float, *, most: float) -> Bar:
    return Bar(ink, share / most, percent(share))


def of_association(found: Association) -> Table:
    """Return two bars for each pair of columns, the most changed first."""
    pairs = sorted(
        _pairs(found), key=lambda pair: (_NOTES.index(pair[0].note), -_change(*pair[1:]))
    )
    rows = (
        (
            label if label.note else label.text,
            strength(source),
            strength(published),
            (
                Bar(Ink.SOURCE, None if source is None else abs(source), strength(source)),
                Bar(Ink.USE, None if published is None else abs(published), strength(published)),
            ),
        )
        for label, source, published in pairs
    )
    heads = {"columns": WORDS, "source": FIGURE, "published": FIGURE, "from 0 to 1": ROOM}
    caption = "Correlation or Cramér's V of two columns; those first that changed most"
    return Table(caption, heads, tuple(rows))


def _pairs(found: Association) -> Iterator[tuple[Noted, float | None, float | None]]:
    for (b, second), (a, first) in combinations(enumerate(found.columns), 2):
        source, published, note = found.source[a][b], found.published[a][b], ""
        if first in found.exact and second in found.exact:
            note = _KEPT
        elif source is None or published is None:
            note = _UNDEFINED
        yield Noted(f"{second}, {first}", note), source, published


def _change(source: float | None, published: float | None) -> float:
    return 0.0 if source is None or published is None else abs(source - published)


def of_queries(found: Sequence[QueryError]) -> Table:
    """Return the error of counts, by selectivity."""
    heads = {
        "rows that a query counts": WORDS,
        "median error": FIGURE,
        "from 0 to 100%": ROOM,
        "19 of 20 are below": FIGURE,
        "median imprecision": FIGURE,
        "queries": FIGURE,
    }
    rows = (
        (
            f"about {percent(one.selectivity)}",
            percent(one.median),
            (Bar(Ink.USE, one.median, percent(one.median)),),
            percent(one.upper),
            percent(one.imprecision),
            number(one.queries),
        )
        for one in found
    )
    caption = (
        "Errors of random COUNT queries, and how many rows too many the classes that overlap them"
        " have (imprecision), relative to the true count"
    )
    return Table(caption, heads, tuple(rows))


def of_predictions(found: Sequence[Classification]) -> Table:
    """Return the accuracy of classifiers that predict columns, by training data."""
    heads = {
        "column": WORDS,
        "classifier": WORDS,
        "figure": WORDS,
        "from the source": FIGURE,
        "from the release": FIGURE,
        "guesser": FIGURE,
    }
    rows = []
    for one in found:
        rows.append((one.column, one.classifier, "accuracy", *map(percent, one.accuracy)))
        if one.auc is not None:
            rows.append((one.column, one.classifier, "AUC", *map(strength, one.auc)))
    caption = "How well a classifier predicts rows of the source that it has not learned from"
    return Table(caption, heads, tuple(rows))
