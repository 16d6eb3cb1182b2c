"""Texts about published columns and figures; never a value."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.policy import (
    BOUNDS,
    BUCKET,
    CENTER,
    COUNT,
    DATE_PART,
    FULL_DOMAIN,
    GLOBAL,
    PAIRS,
    PREFIX,
    ColumnRule,
    MaskingStep,
    Policy,
    Role,
    keys_of,
)
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.policy import Approval
    from dbanon.domain.table import TableName

RECODED: Mapping[str, str] = {
    "interval": "a range, from the least to the greatest value of the class",
    BOUNDS: "the least and the greatest value of the class, in two columns",
    CENTER: "the middle of the class and how far its values are from it at most, in two columns",
    "interval-text": "a text, the least and the greatest value of the class",
    "label": "a label that stands for all values of the class; the value itself where they are one",
    DATE_PART: "the shortest day, month, quarter, year or decades with all values of the class",
    PREFIX: "the characters that all values of the class begin with",
    GLOBAL: "a range or a label of one grid for all classes",
    FULL_DOMAIN: "a label of one level of the taxonomy for all classes",
    "set": "the set of all values of the class",
    "mean": "the mean of the class",
    "midpoint": "the middle between the least and the greatest value of the class",
    "median": "the median of the class",
    "mode": "the most frequent value of the class",
    "cell-suppression": "the value itself where it is one in the class, else NULL",
    "suppress": "*, whatever the value",
}
"""Published form of a quasi-identifier, by recoding."""

_OF_PAIRS: Mapping[str, tuple[str, str]] = {
    BOUNDS: ("the least value of the class", "the greatest value of the class"),
    CENTER: ("the middle of the class", "how far values of the class are from its middle at most"),
}

MASKED: Mapping[str, str] = {
    "top-coding": "the greatest values are one",
    "bottom-coding": "the least values are one",
    "rounding": "values are multiples of the base",
    "discretization": "values are the middles of bins",
    "rare-to-other": "values of few persons are one",
    "local-suppression": "values in rare combinations are NULL",
    "noise": "normal noise, with this share of the variance, is in each value",
    "correlated-noise": "normal noise, with this share of the covariances, is in the values",
    "kim": "normal noise is in the values, whose means and covariances stay",
    "sullivan": "values are those of ranks that noise has changed",
    "individual-ranking": "values are the means of successive ones, or the medians by rank",
    "microaggregation": "values are the means of groups of rows, or the medians by rank",
    "rank-swapping": "values are swapped with others of near rank",
    "swapping": "values of this share of the rows are swapped",
    "permutation": "values stand beside those of any row of the class",
    "pram": "values stay with this probability, else they are any of the others, all as likely",
}
"""Effect of a masking method, by name."""

_KEPT: Mapping[Role, str] = {
    Role.QUASI: "quasi-identifier, published as it is",
    Role.SENSITIVE: "sensitive, published as it is",
    Role.INSENSITIVE: "published as it is",
}


OF_BUCKETS: Mapping[str, str] = {
    BUCKET: f"{BUCKET}: published as the number of a bucket of persons",
    COUNT: f"{COUNT}: published as the number of persons in the bucket with the value",
}
"""Comments of the columns that anatomy adds."""


def alike_in_words(policy: Policy) -> tuple[str, str]:
    """Return the word for sets of indistinguishable persons: class, or bucket for anatomy."""
    return ("bucket", "buckets") if policy.anatomy else ("class", "classes")


def anatomy_in_words(least: int | None) -> str:
    """Return the note on the figures of a relation by anatomy; least: its l, if any."""
    hidden = "Nothing bounds how surely a sensitive value is believed."
    if least is not None:
        hidden = (
            "What is hidden is which sensitive value of a bucket is the person's: no value is that"
            f" of more than one in {least} of the persons of a bucket, which bounds how surely it"
            " is believed."
        )
    return (
        "By anatomy: quasi-identifiers are published exactly, so that whoever knows those of a"
        " person finds the person's row, and that the person is in the table: risks of finding a"
        f" record are those of a row, up to 100%, and no promise is broken by them. {hidden}"
    )


def counted_by_in_words(column: str) -> str:
    """Return the comment of a column that counts are grouped by."""
    return f"{column}: published as each value there may be, also where nobody has it"


def noisy_in_words(column: str, *, epsilon: float) -> str:
    """Return the comment of a column of noisy counts."""
    return (
        f"{column}: published as how many persons have these values, with two-sided geometric noise"
        f" of epsilon {epsilon:g}; it may be negative"
    )


def pseudonym_in_words(column: str) -> str:
    """Return the comment of the column of pseudonyms."""
    return (
        f"{column}: published as what stands for a person, the same in all relations that are"
        " published for the same readers"
    )


def in_words(
    column: str,
    role: Role,
    *,
    recoding: str | None = None,
    floor: str = "",
    masking: Iterable[MaskingStep] = (),
) -> str:
    """Return the comment of a published column, in one line."""
    steps = [f"; masked by {method_in_words(step)}: {MASKED[step.method]}" for step in masking]
    masked = "".join(steps)
    if role is Role.IDENTIFIER:
        return f"{column}: made up ({recoding}), the same in all rows of a person"
    if recoding is None:
        kept = _KEPT[role].replace("as it is", "as it is once masked") if masked else _KEPT[role]
        return f"{column}: {kept}{masked}"
    words = RECODED.get(recoding, recoding)
    if recoding in PAIRS:
        first, second = _OF_PAIRS[recoding]
        words = second if column.endswith(PAIRS[recoding][1]) else first
        words += "; NULL where nothing is said of it"
    return f"{column}: quasi-identifier, published as {words}{floor}{masked}"


def settings_in_words(policy: Policy, *, where: str) -> Iterator[tuple[str, str]]:
    """Yield the title and the value of each given key; where: its conditions in words."""
    steps = (f"{', '.join(step.columns)} by {method_in_words(step)}" for step in policy.masking)
    defaults = {field.name: field.default for field in fields(policy)}
    spelled = {"where": where, "masking": "; ".join(steps)}
    for name, key in keys_of(type(policy)).items():
        value = spelled.get(name, getattr(policy, name))
        if key.shown is not None and value not in ("", defaults[name]):
            title, _, text = (key.shown or f"{name}: {{}}").partition(": ")
            yield title, text.format(value)


def method_in_words(step: MaskingStep) -> str:
    """Return the method of a masking step with its parameters."""
    params = ", ".join(f"{name} {value}" for name, value in step.params.items())
    return f"{step.method} ({params})" if params else step.method


def floor_in_words(rule: ColumnRule) -> str:
    """Return the floor of a quasi-identifier, as the end of a comment."""
    return "".join(f"; {text}" for text in _floors(rule))


def _floors(rule: ColumnRule) -> Iterator[str]:
    if isinstance(rule.at_least, str):
        yield f"nothing finer than a {rule.at_least}"
    elif rule.at_least is not None:
        of = "character" if rule.taxonomy is None else "level"
        plural = "s" * (rule.at_least != 1)
        above = " above the deepest" * (rule.taxonomy is not None)
        yield f"nothing finer than {rule.at_least} {of}{plural}{above}"
    if rule.bands is not None:
        yield f"nothing finer than bands of {rule.bands:.15g}"
    if rule.top is not None:
        yield f"one band from {rule.top:.15g} on"
    if rule.bottom is not None:
        yield f"one band below {rule.bottom:.15g}"
    if rule.snap is not None:
        yield "its bounds are rounded outward"
    if rule.restore_variance:
        yield "means are stretched to the variance of the column"


def is_of_steward(column: str, comment: str) -> bool:
    """Return True if the comment of a published column is not by ``in_words``."""
    return not (comment.startswith(f"{column}: ") and "published as" in comment)


class Meaning(NamedTuple):
    """Title of a metric, and the meaning of its number in one line."""

    title: str
    line: str


MEANINGS: Mapping[str, Meaning] = {
    "il": Meaning(
        "information loss", "rows x columns, weighted by the width of classes; 0 is exact"
    ),
    "iloss": Meaning("ILoss", "number of other values per published value; 0 is exact"),
    "discernibility": Meaning("discernibility", "sum of squared class sizes; less is finer"),
    "c-avg": Meaning("average class", "rows of a class"),
    "c-avg-normalized": Meaning("average class / k", "1 is best: no class is larger than required"),
    "cm": Meaning("classification", "share of rows whose label differs from the class majority"),
    "igpl": Meaning("gain / privacy loss", "information gain per unit of anonymity lost"),
    "suppressed": Meaning("share suppressed", "share of rows that are not published"),
    "suppressed-cells": Meaning(
        "inexact cells", "cells of classes with different values, and of rows left out"
    ),
    "md": Meaning("minimal distortion", "cells that are generalized or suppressed"),
    "prec": Meaning("precision", "1 - mean generalization height; 1 is exact"),
    "sse-ratio": Meaning("SSE / SST", "variation of numbers and dates lost within classes, in %"),
    "max-radius": Meaning(
        "greatest radius", "distance of the row farthest from the central row of its class"
    ),
    "size-times-radius": Meaning("rows x radius", "the sum of that over all classes"),
    "il1": Meaning("IL1, of cells", "mean of |x - x'| / |x| of published numbers, except x = 0"),
    "il2": Meaning("IL2, of means", "the same of the means of columns; 0 is as before"),
    "il3": Meaning("IL3, of variances", "the same of their variances"),
    "il4": Meaning("IL4, of covariances", "the same of the covariances of pairs of columns"),
    "il5": Meaning("IL5, of correlations", "the same of the correlations of pairs of columns"),
    "il-overall": Meaning("IL1 to IL5", "100 times the mean of the five"),
    "il1s": Meaning("IL1s, of cells", "mean of |x - x'| over sqrt(2) deviations of the column"),
}
"""By the name under which a report has the metric."""


MUCH, GAINED = 0.2, 0.1
"""NCP from which advice is to save something, and what it must save."""
BY_LABELS = "Loss by labels alone, not as a plan counts: 0% is a single value, 100% says nothing"
SEVERAL = 4
"""Quasi-identifiers of which two may be left out."""
_LITTLE = 0.01  # NCP below which there is nothing to gain


def advice_on(loss: LossReport, policy: Policy) -> str | None:
    """Return what would lose less in the same classes, or None.

    Without some columns the NCP is the mean of the others: the classes may stay, so that a new
    search is needed only to lose still less.
    """
    by_cost = sorted(loss.columns, key=lambda name: -loss.columns[name])

    def without(names: Sequence[str]) -> float:
        others = [lost for name, lost in loss.columns.items() if name not in names]
        return sum(others) / len(others)

    if loss.ncp >= MUCH and len(by_cost) >= SEVERAL:
        after = without(by_cost[:2])
        if loss.ncp - after >= GAINED:
            return (
                f"{len(by_cost)} quasi-identifiers for {loss.n_rows:,} rows: without"
                f" {listed(map(quote_identifier, by_cost[:2]))} the NCP is {after:.0%}"
            )
    if loss.costliest is None or loss.ncp < _LITTLE:
        return None
    name, share = loss.costliest
    rule = next(one for one in policy.columns if one.column == name)
    less = f"without it the NCP is {without([name]):.1%}"
    if any(True for _ in _floors(rule)):
        less = "a finer floor loses less"
    elif rule.taxonomy is not None:
        less = "a taxonomy with more levels loses less"
    return f"{quote_identifier(name)} costs {share:.0%} of the loss: {less}"


DIGITS = 32
"""Digits of a digest that are shown: fewer could be those of two policies of one author."""


def version_in_words(found: Approval) -> str:
    """Return which version of a policy was approved, or is to be."""
    digest = (found.digest or "")[:DIGITS]
    return f"version {found.version}, digest {digest}, stored by {found.author}"


def approval_in_words(found: Approval) -> str:
    """Return which version of a policy is stored, and who approved it."""
    stored = version_in_words(found)
    if found.by is None:
        return f"{stored}; not approved{', as the database demands' if found.is_demanded else ''}"
    return f"{stored}; approved by {found.by}, {found.at:%Y-%m-%d %H:%M %Z}"


def set_aside_in_words(name: TableName, left: TableName) -> str:
    """Return the message about relations that depended on one with changed columns."""
    return (
        f"other relations depend on {name} as it was: they show nothing from now on. DROP what"
        f" depends on {left}, or make it again from {name}"
    )


def unaccounted_in_words(name: TableName) -> str:
    """Return the message that noisy counts were published without a remaining account."""
    return f"{name} has counts with noise, and nothing says what they have spent"


def unaccounted_remedy(name: TableName) -> str:
    """Return the hint if the account of noisy counts is lost."""
    return f"restore the schema dbanon; or, to begin at 0: DROP TABLE {name}"
