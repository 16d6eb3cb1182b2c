"""Print checks and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli.terminal import console
from dbanon.domain.messages import BY_LABELS, MEANINGS, Meaning, alike_in_words
from dbanon.domain.policy import INDEPENDENT, K_ANONYMITY, VOUCHED, Policy
from dbanon.domain.release import CheckReport, Composition, Exposure, Verdict
from dbanon.pages.figures import at_most, number, percent, strength

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.report import Attack, Risk, Utility


_WORST = 10  # rows in the short tables of checks and losses
_AWARE = (
    "grouping used sensitive values, and anyone who knows the method may infer some of them;"
    " see Minimality in the documentation"
)


def checks(report: CheckReport, *, short: bool = False) -> None:
    """Print the results of the database's checks; short: of many, ten and those that failed."""
    results = report.results
    if short:
        # Those of k-anonymity first, which cover all columns, then in the order of the checks.
        first = sorted(results, key=lambda one: one.model != K_ANONYMITY)[:_WORST]
        results = tuple(r for r in results if r in first or r.verdict is not Verdict.PASSED)
    console.table(
        ("model", "column", "required", "achieved", "classes", "failing", "rows", "verdict"),
        [
            (
                result.model,
                result.column,
                result.required,
                result.achieved,
                result.classes,
                result.failing_classes,
                result.n_rows,
                result.verdict.value,
            )
            for result in results
        ],
        title=f"{report.relation}, proved in the database",
    )
    if others := len(report.results) - len(results):
        console.say(f"{others} more results, all passed: --verbose or dbanon check")


def composition_in_full(found: Composition) -> None:
    """Print the figures of combined disclosure by all releases of a table."""
    if not found.results:
        console.say(found.no_results)
        return
    rows = [
        (
            one.release,
            one.result.model,
            one.result.column,
            one.result.required,
            one.result.achieved,
            one.result.classes,
            one.result.failing_classes,
            one.result.verdict.value,
        )
        for one in found.results
    ]
    headers = ("release", "model", "column", "required", "achieved", "cells", "failing", "verdict")
    tables = ", ".join(map(str, (found.table, *found.beside)))
    title = f"{found.persons:,} persons of {tables}, in cells of the same classes throughout"
    console.table(headers, rows, title=title)
    if not found.against:
        return
    pairs = [
        (one.release, one.in_both, one.smallest, one.below, e.column, e.below, e.to_one)
        for one in found.against
        for e in one.exposures or (Exposure("-", 0, 0, 0),)
    ]
    held = ("against", "in both", "smallest", "below k", "column", "below l", "to one value")
    console.table(
        held, pairs, title=f"Release {found.releases[-1]}, compared with each earlier one"
    )


def loss(
    report: LossReport,
    policy: Policy,
    *,
    verbose: bool = False,
    published: Mapping[str, tuple[str, str]] | None = None,
    advice: str | None = None,
) -> None:
    """Print the information loss by column, of the ten worst unless verbose, and one advice.

    published: recoding and type of each column, if the table is to have these as well.
    """
    _by_column(report, published or {}, verbose=verbose)
    if advice is not None:
        console.say(advice)
    _rows(report, policy)
    if not verbose:
        return
    found = [
        (*MEANINGS.get(name, Meaning(name, "")), value) for name, value in report.metrics.items()
    ]
    measured = [(metric, number(value), line) for metric, line, value in found]
    if measured:
        console.table(("metric", "value", "meaning"), measured)
    if report.sensitive_aware:
        console.say(_AWARE)


def _by_column(
    report: LossReport, published: Mapping[str, tuple[str, str]], *, verbose: bool
) -> None:
    columns = report.columns
    worst = columns if verbose else sorted(columns, key=columns.__getitem__, reverse=True)[:_WORST]
    shown = [(name, columns[name]) for name in columns if name in worst]
    others = [value for name, value in columns.items() if name not in worst]
    if others:
        shown.append((f"{len(others)} others, at most", max(others)))
    shown.append(("all (NCP)", report.ncp))
    if report.weighted_ncp is not None:
        shown.append(("all, weighted (NCP)", report.weighted_ncp))
    head = ("recoding", "published type") if published else ()
    blank = ("",) * len(head)
    rows = [(name, *published.get(name, blank), percent(value)) for name, value in shown]
    title = "Loss: 0% is exact, 100% contains no information"
    console.table(("quasi-identifier", *head, "loss"), rows, title=title)


def _rows(report: LossReport, policy: Policy) -> None:
    """Print the numbers of rows and classes, and why rows are not published."""
    sampled = f" ({report.n_sampled:,} by numbers of rows)" if report.n_sampled else ""
    console.say(
        f"{report.n_rows:,} rows, {report.n_suppressed:,} suppressed{sampled},"
        f" {report.n_classes:,} {alike_in_words(policy)[1]}, smallest {report.smallest_class:,}"
    )
    if report.n_filtered:
        console.say(f"{report.n_filtered:,} more rows of the table do not meet the policy's where")
    if report.n_of_nobody:
        console.say(f"{report.n_of_nobody:,} more rows of the table belong to no published person")
    if report.n_not_drawn:
        console.say(
            f"{report.n_not_drawn:,} more rows are of persons who are not in the sample. It gives"
            " no k: persons known to be in the sample are protected by their classes alone"
        )


def label_loss(columns: Mapping[str, float]) -> None:
    """Print the loss by labels alone, by column."""
    rows = [(name, percent(share)) for name, share in columns.items()]
    if rows:
        console.table(("quasi-identifier", "loss"), rows, title=BY_LABELS)


def independence(policy: Policy) -> None:
    """Print a note on releases that cannot be compared with others."""
    if policy.refresh == INDEPENDENT:
        console.say(f"independent release: {VOUCHED}")


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
    console.table(headers, rows, title="Re-identification: probability that a record is found")
    sizes = [(_band(one.least, one.most), one.classes, one.rows) for one in found.sizes]
    console.table(("class size", "classes", "rows"), sizes)
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
    console.table(
        _BELIEFS, beliefs, title="Disclosure: values in a class, compared with the whole relation"
    )


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
        title = f"Smallest sets of columns that make rows of the source unique, of {among} rows"
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
            persons, right, usual = one.named.persons, one.named.right, one.named.usual
            told = f"named {persons:,} persons, right {right:,}, by chance {usual:,}"
            console.say(f"{one.name} of {one.column}: {told}")


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
