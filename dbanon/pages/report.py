"""The page of a report."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from dbanon.domain.messages import (
    BY_LABELS,
    MEANINGS,
    RECODED,
    Meaning,
    alike_in_words,
    floor_in_words,
    method_in_words,
    settings_in_words,
)
from dbanon.domain.policy import ColumnRule, Policy, Role
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
from dbanon.pages import files
from dbanon.pages.figures import anatomy, asked, at_most, number, percent, search, strength
from dbanon.pages.rendering import (
    FIGURE,
    ROOM,
    WORDS,
    Bar,
    Ink,
    Mark,
    Noted,
    Ruling,
    Sign,
    Table,
    rendered,
    tabled,
    used,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dbanon.domain.assignment import LossReport

    _Pair = tuple[Noted, float | None, float | None]


def of_records(found: Sequence[Reidentification]) -> Table:
    """Return the probability of re-identification for each attacker."""
    return tabled(
        "The chance that an attacker finds the record of a person",
        found,
        ("attacker", WORDS, lambda one: one.attacker),
        ("highest", FIGURE, lambda one: percent(one.highest)),
        ("average", FIGURE, lambda one: at_most(one.average, is_bound=one.is_bound)),
        (
            "records above the threshold",
            FIGURE,
            lambda one: at_most(one.above, is_bound=one.is_bound),
        ),
        ("threshold", FIGURE, lambda one: percent(one.threshold)),
        ("counted among", WORDS, lambda one: one.basis),
    )


def of_sizes(sizes: Sequence[SizeBand]) -> Table:
    """Return the number of rows by class size; the longest bar fills the width."""
    most = max((band.rows for band in sizes), default=0) or 1
    total = sum(band.rows for band in sizes) or 1
    return tabled(
        "How many rows share a published combination of quasi-identifiers",
        sizes,
        ("rows of a class", WORDS, _spelled),
        ("share of rows", FIGURE, lambda band: percent(band.rows / total)),
        ("", ROOM, lambda band: (Bar(Ink.RISK, band.rows / most, f"{number(band.rows)} rows"),)),
        ("classes", FIGURE, lambda band: number(band.classes)),
        ("rows", FIGURE, lambda band: number(band.rows)),
    )


def _spelled(band: SizeBand) -> str:
    if band.most is None:
        return f"{number(band.least)} or more"
    if band.most == band.least:
        return number(band.least)
    return f"{number(band.least)} to {number(band.most)}"


def of_beliefs(found: Sequence[Disclosure], *, group: str) -> Table:
    """Return an attacker's confidence in sensitive values; group: "class" or "bucket"."""
    return tabled(
        f"How many rows have the value that is the most frequent one of their {group}",
        found,
        ("column", WORDS, lambda one: one.column),
        ("guessed right", FIGURE, lambda one: percent(one.guessed)),
        (
            "from 0 to 100%",
            ROOM,
            lambda one: (
                Bar(Ink.RISK, one.guessed, percent(one.guessed), (guesser(one.baseline),)),
            ),
        ),
        ("without the release", FIGURE, lambda one: percent(one.baseline)),
        ("surest belief", FIGURE, lambda one: percent(one.highest)),
        ("values", FIGURE, lambda one: number(one.values)),
    )


def of_changes(found: Sequence[Disclosure], *, group: str) -> Table:
    """Return the information gain from a class or bucket about sensitive columns."""
    return tabled(
        f"What a {group} says of sensitive columns beyond what the whole relation says",
        found,
        ("column", WORDS, lambda one: one.column),
        ("greatest lift", FIGURE, lambda one: number(one.lift)),
        ("positive", FIGURE, lambda one: percent(one.positive)),
        ("negative", FIGURE, lambda one: percent(one.negative)),
        ("least diversity", FIGURE, lambda one: number(one.diversity)),
        ("greatest distance", FIGURE, lambda one: number(one.closeness)),
    )


def of_populations(found: Sequence[Uniqueness]) -> Table:
    """Return the number of unique persons in a population."""
    return tabled(
        "Persons who would be unique in a population, if the source were published as it is",
        found,
        ("estimator", WORDS, lambda one: one.estimator),
        ("population", FIGURE, lambda one: number(one.population)),
        ("the source is", FIGURE, lambda one: percent(one.sampled)),
        ("unique", FIGURE, lambda one: percent(one.share)),
    )


def of_sets(found: Sequence[UniqueSet]) -> Table:
    """Return the column sets that make rows of the source unique."""
    return tabled(
        "Columns that make rows of the source unique, where no fewer of them do",
        found,
        ("columns", WORDS, lambda one: ", ".join(one.columns)),
        ("rows", FIGURE, lambda one: number(one.rows)),
        ("share of those looked at", FIGURE, lambda one: percent(one.share)),
    )


def of_attacks(found: Sequence[Attack]) -> Table:
    """Return the success rate of each attack."""
    return tabled(
        "Attacks on persons, or rows of theirs: how often the attacker was right",
        found,
        ("attack", WORDS, called),
        (
            "right",
            FIGURE,
            lambda one: Noted(percent(one.rate), f"{percent(one.low)} to {percent(one.high)}"),
        ),
        ("with its interval of 95%", ROOM, lambda one: (drawn(one),)),
        ("guesser", FIGURE, lambda one: percent(one.baseline)),
        ("at most", FIGURE, lambda one: "-" if one.expected is None else percent(one.expected)),
        ("candidates", FIGURE, lambda one: number(one.candidates)),
        ("tried", FIGURE, lambda one: number(one.tried)),
    )


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


_BY_RANGE = "Normalized certainty penalty: 0% is exact, 100% contains no information"
_MOST_BINS, _MOST_SETS = 12, 10  # of values and columns, before the others are folded


def write(report: Report, path: Path) -> None:
    """Write the page of a report; equal reports give equal files."""
    files.write(render(report).encode(), path, files.PAGE)


def render(report: Report) -> str:
    """Return the page of a report as text."""
    return rendered("report.html", **values_of(report))


def values_of(report: Report) -> dict[str, object]:
    """Return what the template of a report shows."""
    found = report.risk
    group, _ = alike_in_words(report.policy)
    return dict(
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
        labels=loss_table(BY_LABELS, report.label_loss.items()),
        **({} if report.loss is None else _of_loss(report.loss)),
        **({} if report.utility is None else _of_utility(report.utility)),
        columns=of_columns(report),
        asked=[("every class meets", asked(spec)) for spec in report.policy.models],
        choices=choices(report.policy),
    )


def _of_loss(loss: LossReport) -> dict[str, object]:
    shares = [*loss.columns.items(), ("all (NCP)", loss.ncp)]
    if loss.weighted_ncp is not None:
        shares.append(("all, weighted (NCP)", loss.weighted_ncp))
    return {"lost": loss_table(_BY_RANGE, shares), "metrics": metrics_table(loss)}


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
    types = report.columns
    return tabled(
        "What becomes of each column",
        report.policy.columns,
        ("column", WORDS, lambda rule: rule.column),
        ("role", WORDS, _role),
        ("published as", WORDS, lambda rule: _shown(rule, report.policy)),
        (
            "type",
            WORDS,
            lambda rule: (
                ", ".join(types[name] for name in rule.published_as if name in types) or "-"
            ),
        ),
    )


def _role(rule: ColumnRule) -> Noted:
    return Noted(rule.role.value, "published as made up" if rule.replace else _ROLES[rule.role])


def _shown(rule: ColumnRule, policy: Policy) -> str:
    if not rule.role.is_published:
        return "left out" if rule.replace is None else f"made up: {rule.replace}"
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
    where = ", ".join(one if one.endswith("null") else f"{one} ..." for one in conditions)
    allowed = [("meant as it is", text) for text in policy.allow]
    allowed += [
        (f"meant as it is, of {rule.column}", text)
        for rule in policy.columns
        for text in rule.allow
    ]
    named = [("name", policy.name), ("algorithm", search(policy))]
    return [*named, *settings_in_words(policy, where=where), *allowed]


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
    planned = report.release is None
    return tabled(
        f"What every {alike_in_words(report.policy)[0]} must achieve, and what the worst one"
        f" {'would' if planned else 'does'}",
        report.checks.results,
        (
            "model",
            WORDS,
            lambda one: Noted(one.model, "all rows" if one.column is None else one.column),
        ),
        ("required", FIGURE, _required),
        ("achieved", FIGURE, lambda one: number(one.achieved)),
        ("verdict", WORDS, lambda one: _verdict(one, planned=planned)),
    )


def _required(result: CheckResult) -> str:
    model = MODELS.get(result.model)
    bound = "" if model is None else f"{model.bound} "
    return f"{bound}{number(result.required)}"


def _verdict(result: CheckResult, *, planned: bool) -> Ruling:
    if planned and result.verdict is Verdict.PASSED:
        return Ruling("open", "○", "Met")
    failing = f"{number(result.failing_classes)} of {number(result.classes)} classes fail"
    return Ruling(*_SIGNS[result.verdict], failing if result.failing_classes else "")


def facts(report: Report) -> list[tuple[str, str]]:
    """Return the main counts; of a live view, as it is now."""
    loss, now = report.loss, report.now
    one, all_of_them = alike_in_words(report.policy)
    if loss is None or report.hidden:
        of_k = report.checks.of_k
        hidden = [("rows hidden since", number(report.hidden))] if report.hidden else []
        return [
            ("rows shown now", number(None if now is None else now.n_rows)),
            *hidden,
            (all_of_them, number(None if now is None else now.classes)),
            (f"smallest {one}", number(None if of_k is None else of_k.achieved)),
        ]
    return [
        ("rows published", number(loss.n_rows - loss.n_suppressed)),
        ("rows left out", number(loss.n_suppressed)),
        (all_of_them, number(loss.n_classes)),
        (f"smallest {one}", number(loss.smallest_class)),
    ]


def of_risk(report: Report) -> list[Bar]:
    """Return the maximum and average success of attackers; shorter is better."""
    found = report.risk
    return [*_records(report), *_values(found.disclosures, alike_in_words(report.policy)[0])]


def beyond(risk: Risk) -> list[Bar]:
    """Return the attacks that exceed the bound of a model, each with its worst column."""
    worst: dict[str, Attack] = {}
    for one in risk.attacks:
        known = worst.get(one.name)
        if one.is_beyond and (known is None or one.rate > known.rate):
            worst[one.name] = one
    return [
        replace(drawn(one), label=called(one), about=one.words)
        for one in sorted(worst.values(), key=lambda one: -one.rate)
    ]


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


def loss_table(caption: str, shares: Iterable[tuple[str, float]]) -> Table:
    """Return the loss of each column, and in total if that is one of the shares."""
    return tabled(
        caption,
        shares,
        ("quasi-identifier", WORDS, lambda lost: lost[0]),
        ("lost", FIGURE, lambda lost: percent(lost[1])),
        ("from 0 to 100%", ROOM, lambda lost: used(lost[1])),
    )


def metrics_table(loss: LossReport) -> Table:
    """Return every other loss metric, with an explanation."""
    return tabled(
        "The same loss as others measure it",
        [(MEANINGS.get(name, Meaning(name, "")), value) for name, value in loss.metrics.items()],
        ("metric", WORDS, lambda one: one[0].title),
        ("value", FIGURE, lambda one: number(one[1])),
        ("meaning", WORDS, lambda one: one[0].line),
    )


def distribution_table(found: Distribution) -> Table:
    """Return two bars for each bin; the longest fills the width."""
    most = max((*found.source, *found.published), default=0.0) or 1.0

    def bars(shares: tuple[str, float, float]) -> tuple[Bar, ...]:
        inks = zip((Ink.SOURCE, Ink.USE), shares[1:], strict=True)
        return tuple(Bar(ink, share / most, percent(share)) for ink, share in inks)

    return tabled(
        f"{found.column}: {percent(found.distance)} apart",
        zip(found.bins, found.source, found.published, strict=True),
        ("value", WORDS, lambda shares: shares[0]),
        ("source", FIGURE, lambda shares: percent(shares[1])),
        ("published", FIGURE, lambda shares: percent(shares[2])),
        ("share of rows", ROOM, bars),
    )


def association_table(found: Association) -> Table:
    """Return two bars for each pair of columns, the most changed first."""

    def bars(pair: _Pair) -> tuple[Bar, ...]:
        inks = zip((Ink.SOURCE, Ink.USE), pair[1:], strict=True)
        return tuple(Bar(ink, None if x is None else abs(x), strength(x)) for ink, x in inks)

    return tabled(
        "Correlation or Cramér's V of two columns; those first that changed most",
        sorted(_pairs(found), key=_order),
        ("columns", WORDS, lambda pair: pair[0] if pair[0].note else pair[0].text),
        ("source", FIGURE, lambda pair: strength(pair[1])),
        ("published", FIGURE, lambda pair: strength(pair[2])),
        ("from 0 to 1", ROOM, bars),
    )


def _pairs(found: Association) -> Iterator[_Pair]:
    for (b, second), (a, first) in combinations(enumerate(found.columns), 2):
        source, published, note = found.source[a][b], found.published[a][b], ""
        if first in found.exact and second in found.exact:
            note = _KEPT
        elif source is None or published is None:
            note = _UNDEFINED
        yield Noted(f"{second}, {first}", note), source, published


def _order(pair: _Pair) -> tuple[int, float]:
    label, source, published = pair
    apart = 0.0 if source is None or published is None else abs(source - published)
    return _NOTES.index(label.note), -apart


def queries_table(found: Sequence[QueryError]) -> Table:
    """Return the error of counts, by selectivity."""
    return tabled(
        "Errors of random COUNT queries, and how many rows too many the classes that overlap them"
        " have (imprecision), relative to the true count",
        found,
        ("rows that a query counts", WORDS, lambda one: f"about {percent(one.selectivity)}"),
        ("median error", FIGURE, lambda one: percent(one.median)),
        ("from 0 to 100%", ROOM, lambda one: used(one.median)),
        ("19 of 20 are below", FIGURE, lambda one: percent(one.upper)),
        ("median imprecision", FIGURE, lambda one: percent(one.imprecision)),
        ("queries", FIGURE, lambda one: number(one.queries)),
    )


def predictions_table(found: Sequence[Classification]) -> Table:
    """Return the accuracy of classifiers that predict columns, by training data."""
    rows = []
    for one in found:
        rows.append((one.column, one.classifier, "accuracy", *map(percent, one.accuracy)))
        if one.auc is not None:
            rows.append((one.column, one.classifier, "AUC", *map(strength, one.auc)))
    heads = dict.fromkeys(("column", "classifier", "figure"), WORDS)
    heads |= dict.fromkeys(("from the source", "from the release", "guesser"), FIGURE)
    caption = "How well a classifier predicts rows of the source that it has not learned from"
    return Table(caption, heads, tuple(rows))
