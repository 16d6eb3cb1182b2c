"""Print risk and utility."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli.notation import at_most, number, percent, strength
from dbanon.cli.terminal import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.domain.report import Attack, Naming, Risk, Utility

_BELIEFS = (
    *("column", "values", "highest belief", "lift", "guessed", "baseline", "positive"),
    *("negative", "diversity", "closeness"),
)
_LEARNED = (
    *("predicts", "by", "from the source", "from the release", "guessing"),
    *("AUC source", "AUC release", "AUC guessing"),
)


_ATTACKED = (
    *("attack", "column", "tried", "candidates", "right", "95 % from", "to"),
    *("without", "bound"),
)
_TRIED = "Attacks on persons, or rows of theirs: how often they are right"


def risk(found: Risk) -> None:
    """Print re-identification risks, and disclosures by classes."""
    rows = [
        (
            one.attacker.value,
            percent(one.highest),
            at_most(one.average, is_bound=one.is_bound),
            at_most(one.above, is_bound=one.is_bound),
            percent(one.threshold),
            one.basis,
        )
        for one in found.reidentification
    ]
    headers = ("attacker", "highest", "average", "at risk", "over", "counted among")
    console.table(headers, rows, title="Re-identification: how likely a record is found")
    sizes = [(_band(one.least, one.most), one.classes, one.rows) for one in found.sizes]
    console.table(("rows alike", "classes", "rows"), sizes)
    for line in found.masked_in_words:
        console.say(line)
    if not found.disclosures:
        return
    beliefs = [
        (
            *(one.column, one.values, percent(one.highest), number(one.lift)),
            *map(percent, (one.guessed, one.baseline, one.positive, one.negative)),
            *map(number, (one.diversity, one.closeness)),
        )
        for one in found.disclosures
    ]
    console.table(_BELIEFS, beliefs, title="Disclosure: what a class says beyond the relation")


def uniqueness(found: Risk, *, sampled: int | None) -> None:
    """Print unique persons, of a number of sampled source rows or (None) of all."""
    rows = [
        (one.estimator, one.population, percent(one.sampled), percent(one.share))
        for one in found.uniqueness
    ]
    if rows:
        headers = ("estimator", "population", "sampled", "unique")
        console.table(headers, rows, title="Unique persons in the population, by the source")
    sets = [(", ".join(one.columns), one.rows, percent(one.share)) for one in found.unique_sets]
    if sets:
        among = "all" if sampled is None else f"{sampled:,}"
        title = f"What makes rows of the source unique, of {among} rows"
        console.table(("columns", "rows", "share"), sets, title=title)
    if rows or sets:
        console.say(found.counted_in_words)


def attacks(found: Sequence[Attack], *, title: str = _TRIED) -> None:
    """Print success rates of attacks with baselines and bounds, in percent, and explanations."""
    if not found:
        return
    rows = [
        (
            *(one.name, one.column, one.tried),
            None if one.candidates is None else f"{one.candidates:,.0f}",
            *map(percent, (one.rate, one.low, one.high, one.baseline)),
            "none" if one.expected is None else percent(one.expected),
        )
        for one in found
    ]
    console.table(_ATTACKED, rows, title=title)
    for name, words in dict.fromkeys((one.name, one.words) for one in found):
        console.say(f"{name}: {words}")
    for one in found:
        if one.named is not None:
            console.say(f"{one.name} of {one.column}: {_named(one.named)}")


def _named(told: Naming) -> str:
    return f"named {told.persons:,} persons, right {told.right:,}, by chance {told.usual:,}"


def utility(found: Utility) -> None:
    """Print the remaining utility."""
    lost = [(one.column, percent(one.distance)) for one in found.distributions]
    if lost:
        title = "Distributions: 0% is as in the source, 100% has nothing in common with it"
        console.table(("column", "distance"), lost, title=title)
    errors = [
        (
            *(percent(one.selectivity), one.queries, percent(one.median), percent(one.upper)),
            *(percent(one.imprecision), percent(one.imprecision_upper)),
        )
        for one in found.queries
    ]
    if errors:
        title = "COUNT queries: relative errors; imprecision: rows too many in overlapping classes"
        of_each = ("median", "95th percentile", "imprecision", "its 95th percentile")
        console.table(("true of", "queries", *of_each), errors, title=title)
    learned = [
        (
            *(one.column, one.classifier, *map(percent, one.accuracy)),
            *map(strength, one.auc or (None,) * 3),
        )
        for one in found.classifications
    ]
    if learned:
        title = "Classifiers: accuracy on rows unknown to them"
        console.table(_LEARNED, learned, title=title)
    for line in found.remarks:
        console.say(line)


def _band(least: int, most: int | None) -> str:
    if most is None:
        return f"{least}+"
    return str(least) if least == most else f"{least}-{most}"
