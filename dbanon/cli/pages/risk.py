"""Risk figures as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli.notation import at_most, number, percent
from dbanon.cli.pages.figures import FIGURE, ROOM, WORDS, Bar, Ink, Mark, Noted, Sign, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.domain.report import (
        Attack,
        Disclosure,
        Reidentification,
        SizeBand,
        Uniqueness,
        UniqueSet,
    )


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
