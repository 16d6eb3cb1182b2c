"""The page of a report."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from dbanon.cli import files
from dbanon.cli.pages.rendering import (
    FIGURE,
    ROOM,
    WORDS,
    Bar,
    Cell,
    Ink,
    Mark,
    Noted,
    Ruling,
    Sign,
    Table,
    rendered,
)
from dbanon.cli.terminal.report import anatomy, asked, at_most, number, percent, search, strength
from dbanon.domain.messages import (
    MEANINGS,
    RECODED,
    Meaning,
    alike_in_words,
    floor_in_words,
    method_in_words,
    settings_in_words,
)
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, Policy, Role
from dbanon.domain.release import CheckResult, Verdict
from dbanon.domain.report import (
    BEYOND,
    Association,
    Attack,
    Attacker,
    Classification,
    Disclosure,
    Distribution,
    QueryError,
    Reidentification,
    Report,
    Risk,
    SizeBand,
    Uniqueness,
    UniqueSet,
    Utility,
)
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dbanon.domain.assignment import LossReport


def of_records(found: Sequence[Reidentification]) -> Table:
    """Return the probability of re-identification for each attacker."""
    heads = {
        "attacker": WORDS,
        "highest": FIGURE,
        "average": FIGURE,
        "records above the threshold": FIGURE,
        "threshold": FIGURE,
        "counted among": WORDS,
    }
    rows = (
        (
            one.attacker,
            percent(one.highest),
            at_most(one.average, is_bound=one.is_bound),
            at_most(one.above, is_bound=one.is_bound),
            percent(one.threshold),
            one.basis,
        )
        for one in found
    )
    return Table("The chance that an attacker finds the record of a person", heads, tuple(rows))


def of_sizes(sizes: Sequence[SizeBand]) -> Table:
    """Return the number of rows by class size; the longest bar fills the width."""
    heads = {
        "rows of a class": WORDS,
        "share of rows": FIGURE,
        "": ROOM,
        "classes": FIGURE,
        "rows": FIGURE,
    }
    most = max((band.rows for band in sizes), default=0) or 1
    total = sum(band.rows for band in sizes) or 1
    rows = (
        (
            _spelled(band),
            percent(band.rows / total),
            (Bar(Ink.RISK, band.rows / most, f"{number(band.rows)} rows"),),
            number(band.classes),
            number(band.rows),
        )
        for band in sizes
    )
    caption = "How many rows share a published combination of quasi-identifiers"
    return Table(caption, heads, tuple(rows))


def _spelled(band: SizeBand) -> str:
    if band.most is None:
        return f"{number(band.least)} or more"
    if band.most == band.least:
        return number(band.least)
    return f"{number(band.least)} to {number(band.most)}"


def of_beliefs(found: Sequence[Disclosure], *, group: str) -> Table:
    """Return an attacker's confidence in sensitive values; group: "class" or "bucket"."""
    heads = {
        "column": WORDS,
        "guessed right": FIGURE,
        "from 0 to 100%": ROOM,
        "without the release": FIGURE,
        "surest belief": FIGURE,
        "values": FIGURE,
    }
    rows = (
        (
            one.column,
            percent(one.guessed),
            (Bar(Ink.RISK, one.guessed, percent(one.guessed), (guesser(one.baseline),)),),
            percent(one.baseline),
            percent(one.highest),
            number(one.values),
        )
        for one in found
    )
    caption = f"How many rows have the value that is the most frequent one of their {group}"
    return Table(caption, heads, tuple(rows))


def of_changes(found: Sequence[Disclosure], *, group: str) -> Table:
    """Return the information gain from a class or bucket about sensitive columns."""
    heads = {
        "column": WORDS,
        "greatest lift": FIGURE,
        "positive": FIGURE,
        "negative": FIGURE,
        "least diversity": FIGURE,
        "greatest distance": FIGURE,
    }
    rows = (
        (
            one.column,
            number(one.lift),
            percent(one.positive),
            percent(one.negative),
            number(one.diversity),
            number(one.closeness),
        )
        for one in found
    )
    caption = f"What a {group} says of sensitive columns beyond what the whole relation says"
    return Table(caption, heads, tuple(rows))


def of_populations(found: Sequence[Uniqueness]) -> Table:
    """Return the number of unique persons in a population."""
    heads = {"estimator": WORDS, "population": FIGURE, "the source is": FIGURE, "unique": FIGURE}
    rows = (
        (one.estimator, number(one.population), percent(one.sampled), percent(one.share))
        for one in found
    )
    caption = "Persons who would be unique in a population, if the source were published as it is"
    return Table(caption, heads, tuple(rows))


def of_sets(found: Sequence[UniqueSet]) -> Table:
    """Return the column sets that make rows of the source unique."""
    heads = {"columns": WORDS, "rows": FIGURE, "share of those looked at": FIGURE}
    rows = ((", ".join(one.columns), number(one.rows), percent(one.share)) for one in found)
    caption = "Columns that make rows of the source unique, where no fewer of them do"
    return Table(caption, heads, tuple(rows))


def of_attacks(found: Sequence[Attack]) -> Table:
    """Return the success rate of each attack."""
    heads = {
        "attack": WORDS,
        "right": FIGURE,
        "with its interval of 95%": ROOM,
        "guesser": FIGURE,
        "at most": FIGURE,
        "candidates": FIGURE,
        "tried": FIGURE,
    }
    rows = (
        (
            called(one),
            Noted(percent(one.rate), f"{percent(one.low)} to {percent(one.high)}"),
            (drawn(one),),
            percent(one.baseline),
            "-" if one.expected is None else percent(one.expected),
            number(one.candidates),
            number(one.tried),
        )
        for one in found
    )
    caption = "Attacks on persons, or rows of theirs: how often the attacker was right"
    return Table(caption, heads, tuple(rows))


def called(attack: Attack) -> str:
    """Return the name of an attack, with its target column."""
    return attack.name if attack.column is None else f"{attack.name}: {attack.column}"


def drawn(attack: Attack) -> Bar:
    """Return the rate of an attack, with marks for baseline and bound."""
    marks = [guesser(attack.baseline)]
    if attack.expected is not None:
        marks.append(bound(attack.expected, "at most"))
    ends = (attack.low, attack.high)
    return Bar(Ink.RISK, attack.rate, percent(attack.rate), tuple(marks), ends)


def guesser(share: float) -> Mark:
    """Return the mark of guessing without the release."""
    return Mark(Sign.GUESS, share, f"guesser {percent(share)}")


def bound(share: float, words: str) -> Mark:
    """Return the mark of a bound."""
    return Mark(Sign.BOUND, share, f"{words} {percent(share)}")


_MOST_BINS, _MOST_SETS = 12, 10  # of values and columns, before the others are folded


def write(report: Report, path: Path) -> None:
    """Write the page of a report; equal reports give equal files."""
    files.write(render(report).encode(), path, files.PAGE)


def render(report: Report) -> str:
    """Return the page of a report as text."""
    found = report.risk
    group, _ = alike_in_words(report.policy)
    return rendered(
        "report.html",
        report=report,
        ruling=ruling(report),
        models=of_models(report),
        facts=facts(report),
        anatomy=anatomy(report.policy),
        risks=of_risk(report),
        beyond=beyond(found),
        losses=of_loss(report),
        records=of_records(found.reidentification),
        sizes=of_sizes(found.sizes),
        beliefs=of_beliefs(found.disclosures, group=group),
        changes=of_changes(found.disclosures, group=group),
        populations=of_populations(found.uniqueness),
        sets=of_sets(found.unique_sets).parts(_MOST_SETS),
        attacks=of_attacks(found.attacks),
        methods=list(dict.fromkeys((one.name, one.words) for one in found.attacks)),
        labels=labels_table(report.label_loss),
        **({} if report.loss is None else _of_loss(report.loss)),
        **({} if report.utility is None else _of_utility(report.utility)),
        columns=of_columns(report),
        asked=[("every class meets", asked(spec)) for spec in report.policy.models],
        choices=choices(report.policy),
    )


def _of_loss(loss: LossReport) -> dict[str, object]:
    return {"lost": loss_table(loss), "metrics": metrics_table(loss)}


def _of_utility(found: Utility) -> dict[str, object]:
    names = (name for one in found.distributions for name in one.bins)
    return {
        "distributions": [distribution_table(one).parts(_MOST_BINS) for one in found.distributions],
        "opened": any(name.endswith(BEYOND) for name in names),
        "associations": [association_table(one).parts(_MOST_SETS) for one in found.associations],
        "queries": queries_table(found.queries),
        "predictions": predictions_table(found.classifications),
    }


_ROLES = {
    Role.IDENTIFIER: "not published",
    Role.QUASI: "what others may know",
    Role.SENSITIVE: "what nobody should learn",
    Role.INSENSITIVE: "published as it is",
    Role.WEIGHT: "how many persons a row stands for",
}


def of_columns(report: Report) -> Table:
    """Return the recoding of each column, in the order of the policy."""
    heads = {"column": WORDS, "role": WORDS, "published as": WORDS, "type": WORDS}
    rows = (
        (
            rule.column,
            Noted(rule.role.value, _ROLES[rule.role]),
            _shown(rule, report.policy),
            ", ".join(_types(rule, report.columns)) or "-",
        )
        for rule in report.policy.columns
    )
    return Table("What becomes of each column", heads, tuple(rows))


def _types(rule: ColumnRule, types: Mapping[str, str]) -> Iterator[str]:
    return (types[name] for name in rule.published_as if name in types)


def _shown(rule: ColumnRule, policy: Policy) -> str:
    if not rule.role.is_published:
        return "left out"
    recoded = rule.role is Role.QUASI and not rule.keep and not policy.anatomy
    said = [_recoded(rule)] if recoded else ["as it is"]
    said += [text for text in floor_in_words(rule).split("; ") if text]
    if rule.taxonomy is not None:
        said.append(f"by the taxonomy {rule.taxonomy}")
    if rule.order is not None:
        said.append(f"{number(len(rule.order))} values in an order")
    if rule.pooled is not None:
        prefix = "prefix" if len(rule.pooled) == 1 else "prefixes"
        said.append(f"{number(len(rule.pooled))} {prefix} in one cell")
    if rule.weight != 1:
        said.append(f"its loss counts {rule.weight:g} times")
    said += [f"masked by {method_in_words(step)}" for step in policy.masked(rule.column)]
    return "; ".join(said)


def _recoded(rule: ColumnRule) -> str:
    if rule.recoding is None:
        return "recoded as its type has it"
    return RECODED.get(rule.recoding, rule.recoding)


def choices(policy: Policy) -> list[tuple[str, str]]:
    """Return all settings of a policy except models and columns, as (name, in words)."""
    conditions = dict.fromkeys(f"{one.column} {one.comparison}" for one in policy.where)
    where = ", ".join(map(_condition, conditions))
    allowed = [("meant as it is", text) for text in policy.allow]
    allowed += [
        (f"meant as it is, of {rule.column}", text)
        for rule in policy.columns
        for text in rule.allow
    ]
    named = [("name", policy.name), ("algorithm", search(policy))]
    return [*named, *settings_in_words(policy, where=where), *allowed]


def _condition(text: str) -> str:
    return text if text.endswith("null") else f"{text} ..."


_SIGNS = {
    Verdict.PASSED: ("passed", "✔", "Passed"),
    Verdict.FAILED: ("failed", "✘", "Failed"),
    Verdict.NOT_CHECKED: ("open", "○", "Not checked"),
}
_LINES = {
    Verdict.PASSED: "The database counted every model on the relation that readers see: all hold.",
    Verdict.FAILED: "Some class does not meet a model. Until it does, nobody should read it.",
    Verdict.NOT_CHECKED: "Not all that is required was counted, so nothing is promised.",
}
_PLANNED = {
    Verdict.PASSED: "Nothing is published. The search met every model; the database counts again.",
    Verdict.FAILED: "Nothing is published, and a model is not met.",
    Verdict.NOT_CHECKED: "Nothing is published. The database has counted nothing yet.",
}


def ruling(report: Report) -> Ruling:
    """Return the overall verdict."""
    verdict = report.checks.verdict
    if report.release is not None:
        return Ruling(*_SIGNS[verdict], _LINES[verdict])
    kind, sign, word = ("open", "○", "Planned") if report.checks.passed else _SIGNS[verdict]
    return Ruling(kind, sign, word, _PLANNED[verdict])


def of_models(report: Report) -> Table:
    """Return the requirement of each model, and the value of the worst class."""
    heads = {"model": WORDS, "required": FIGURE, "achieved": FIGURE, "verdict": WORDS}
    planned = report.release is None
    rows = tuple(_checked(result, planned=planned) for result in report.checks.results)
    group, _ = alike_in_words(report.policy)
    would = "would" if planned else "does"
    caption = f"What every {group} must achieve, and what the worst one {would}"
    return Table(caption, heads, rows)


def _checked(result: CheckResult, *, planned: bool) -> tuple[Cell, ...]:
    model = MODELS.get(result.model)
    bound = "" if model is None else f"{model.bound} "
    failing = f"{number(result.failing_classes)} of {number(result.classes)} classes fail"
    found = Ruling(*_SIGNS[result.verdict], failing if result.failing_classes else "")
    if planned and result.verdict is Verdict.PASSED:
        found = Ruling("open", "○", "Met")
    return (
        Noted(result.model, "all rows" if result.column is None else result.column),
        f"{bound}{number(result.required)}",
        number(result.achieved),
        found,
    )


def facts(report: Report) -> list[tuple[str, str]]:
    """Return the main counts; of a live view, as it is now."""
    loss, now = report.loss, report.now
    one, all_of_them = alike_in_words(report.policy)
    if loss is None or report.hidden:
        hidden = [("rows hidden since", number(report.hidden))] if report.hidden else []
        return [
            ("rows shown now", number(None if now is None else now.n_rows)),
            *hidden,
            (all_of_them, number(None if now is None else now.classes)),
            (f"smallest {one}", number(_smallest(report))),
        ]
    return [
        ("rows published", number(loss.n_rows - loss.n_suppressed)),
        ("rows left out", number(loss.n_suppressed)),
        (all_of_them, number(loss.n_classes)),
        (f"smallest {one}", number(loss.smallest_class)),
    ]


def _smallest(report: Report) -> float | None:
    """Return the size of the smallest class, None if k was not checked."""
    found = (one.achieved for one in report.checks.results if one.model == K_ANONYMITY)
    return next(found, None)


def of_risk(report: Report) -> list[Bar]:
    """Return the maximum and average success of attackers; shorter is better."""
    found = report.risk
    return [*_records(report), *_values(found.disclosures, alike_in_words(report.policy)[0])]


def beyond(risk: Risk) -> list[Bar]:
    """Return the attacks that exceed the bounds of models, with the worst column of each."""
    worst: dict[str, Attack] = {}
    for one in risk.attacks:
        known = worst.get(one.name)
        if one.is_beyond and (known is None or one.rate > known.rate):
            worst[one.name] = one
    return [_assumed(one) for one in sorted(worst.values(), key=lambda one: -one.rate)]


def _assumed(attack: Attack) -> Bar:
    return replace(drawn(attack), label=called(attack), about=attack.words)


_KNOWS = {
    Attacker.PROSECUTOR: "by somebody who knows that the person is in the relation",
    Attacker.JOURNALIST: "by somebody who knows that a person of the population is in it",
    Attacker.MARKETER: "by somebody who wants as many persons as can be had",
}


_FINDS = "by whoever knows the quasi-identifiers, which are published: the row, and not the value"


def _records(report: Report) -> Iterator[Bar]:
    for one in report.risk.reidentification[:1]:
        knows = _FINDS if report.policy.anatomy else _KNOWS[one.attacker]
        marks = (bound(one.threshold, "threshold"),)
        average = ("on average", one.average, one.is_bound)
        for label, share, is_bound in (("easiest to find", one.highest, False), average):
            yield Bar(
                Ink.RISK,
                share,
                at_most(share, is_bound=is_bound),
                marks,
                label=f"Record {label}",
                about=knows,
            )


def _values(found: Sequence[Disclosure], group: str) -> Iterator[Bar]:
    """Yield the highest belief, the best guessed column, and that with the largest gain."""
    if not found:
        return
    surest = max(found, key=lambda one: one.highest)
    yield Bar(
        Ink.RISK,
        surest.highest,
        percent(surest.highest),
        label=f"Surest belief in a value of {surest.column}",
        about=f"the greatest share in a {group}{_first('surest', found)}",
    )
    chosen = {max(found, key=lambda one: one.guessed): "best guessed"}
    gains = max(found, key=lambda one: one.guessed - one.baseline)
    chosen.setdefault(gains, "furthest above a guesser")
    for one, which in chosen.items():
        yield Bar(
            Ink.RISK,
            one.guessed,
            percent(one.guessed),
            (guesser(one.baseline),),
            label=f"Values of {one.column} guessed right",
            about=f"by the most frequent value of each {group}{_first(which, found)}",
        )


def _first(which: str, found: Sequence[Disclosure]) -> str:
    return f"; of {len(found)} sensitive columns the {which}" if len(found) > 1 else ""


def of_loss(report: Report) -> list[Bar]:
    """Return the loss for analysts; shorter is better."""
    found = report.utility
    if report.loss is None or found is None:
        return [
            _lost(share, f"Detail of {name} lost", "by its labels; 100% would say nothing")
            for name, share in report.label_loss.items()
        ]
    about = "of the range of each column; 100% would say nothing"
    detail = _lost(report.loss.ncp, "Detail lost (NCP)", about)
    return [detail, *_apart(found), *_counts(found), *_learned(found)]


def _lost(share: float, label: str, about: str) -> Bar:
    return Bar(Ink.USE, share, percent(share), label=label, about=about)


def _apart(utility: Utility) -> Iterator[Bar]:
    if utility.distributions:
        worst = max(utility.distributions, key=lambda one: one.distance)
        label = f"Distribution most changed: {worst.column}"
        yield _lost(worst.distance, label, "the share of rows that would have to move to undo it")


def _counts(utility: Utility) -> Iterator[Bar]:
    if utility.queries:
        worst = max(utility.queries, key=lambda one: one.median)
        label = f"Error of counts of {percent(worst.selectivity)} of the rows"
        yield _lost(worst.median, label, f"the median of {number(worst.queries)} random queries")


def _learned(utility: Utility) -> Iterator[Bar]:
    if not utility.classifications:
        return
    worst = max(utility.classifications, key=lambda one: (one.is_predicted, one.lost))
    source, published, guess = map(percent, worst.accuracy)
    if not worst.is_predicted:
        label, about = f"Accuracy in predicting {worst.column}", worst.guessed_in_words
        yield Bar(Ink.USE, None, "nothing to lose", label=label, about=about)
        return
    about = f"{source} from the source, {published} from the release, {guess} by a guesser"
    yield _lost(worst.lost, f"Accuracy lost in predicting {worst.column}", about)


_UNDEFINED = "undefined: a column does not vary, or its values are too many"
_KEPT = "published as they are: as in the source, but for rows left out"
_NOTES = ("", _UNDEFINED, _KEPT)  # in the order in which pairs are shown


def loss_table(loss: LossReport) -> Table:
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


def labels_table(lost: Mapping[str, float]) -> Table:
    """Return the loss by the labels of each column alone."""
    heads = {"quasi-identifier": WORDS, "lost": FIGURE, "from 0 to 100%": ROOM}
    rows = (
        (name, percent(share), (Bar(Ink.USE, share, percent(share)),))
        for name, share in lost.items()
    )
    caption = "Loss by labels: 0% are single values, 100% says nothing"
    return Table(caption, heads, tuple(rows))


def metrics_table(loss: LossReport) -> Table:
    """Return every other loss metric, with an explanation."""
    found = ((MEANINGS.get(name, Meaning(name, "")), value) for name, value in loss.metrics.items())
    heads = {"metric": WORDS, "value": FIGURE, "meaning": WORDS}
    rows = ((meaning.title, number(value), meaning.line) for meaning, value in found)
    return Table("The same loss as others measure it", heads, tuple(rows))


def distribution_table(found: Distribution) -> Table:
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


def association_table(found: Association) -> Table:
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


def queries_table(found: Sequence[QueryError]) -> Table:
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


def predictions_table(found: Sequence[Classification]) -> Table:
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
