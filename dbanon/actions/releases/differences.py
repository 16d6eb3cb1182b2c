"""Compare reports, as JSON documents, figure by figure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from dbanon.domain.errors import ConfigError
from dbanon.domain.messages import MEANINGS
from dbanon.domain.report import CONFIDENTIAL, Change, Difference
from dbanon.domain.text import converted, unread
from dbanon.models.base import Bound
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_EARLIER = "dbanon report RELATION --json > before.json, before it is published anew"
_PARTS = ("checks", "loss", "risk", "utility")
_LABELS = "label_loss"
# The keys that name the entries of a list, in order.
_NAMES = (
    *("attacker", "model", "name", "estimator", "column", "columns", "classifier", "selectivity"),
    *("least", "population"),
)
_LEARNED = ("source", "release", "guessing")
_BOUND = "expected"  # of an attack; None without a bound
_GREATEST = 2**63  # no report has such a number
_MORE_IS_BETTER = ("prec", "igpl")  # metrics
_LEAST = 0.01  # minimum relative change


class Differences(NamedTuple):
    """The different figures, in the order of the later report, and the number of equal ones."""

    different: tuple[Difference, ...]
    same: int


class _Wording(NamedTuple):
    """The description of a figure, and the effects of a larger and a smaller value."""

    figure: str
    words: str
    larger: Change
    smaller: Change
    is_share: bool = False


_RISK, _SAFETY = (Change.RISKIER, Change.SAFER), (Change.SAFER, Change.RISKIER)
_LOSS, _USE = (Change.LESS_USEFUL, Change.MORE_USEFUL), (Change.MORE_USEFUL, Change.LESS_USEFUL)
_RISKED, _LOST, _USED = (*_RISK, True), (*_LOSS, True), (*_USE, True)  # shares
_FOUND, _CLASS = r"risk reidentification \[(.+)\]", r"risk disclosures \[(.+)\]"
_ATTACK, _APART = r"risk attacks \[(.+)\]", r"utility distributions \[(.+)\]"
_ERROR, _LEARNING = r"utility queries \[(.+)\]", r"utility classifications \[(.+)\]"
_WORDINGS = (
    _Wording(r"checks results \[(.+)\] failing_classes", r"classes that fail \1", *_RISK),
    _Wording(f"{_FOUND} highest", r"\1 finds the record easiest to find", *_RISKED),
    _Wording(f"{_FOUND} average", r"\1 finds a record, on average", *_RISKED),
    _Wording(f"{_FOUND} above", r"records at risk of the \1", *_RISKED),
    _Wording(f"{_CLASS} highest", r"highest belief in a value of \1", *_RISKED),
    _Wording(f"{_CLASS} lift", r"\1: belief, times what it was before", *_RISK),
    _Wording(f"{_CLASS} guessed", r"\1 is guessed by the class", *_RISKED),
    _Wording(f"{_CLASS} positive", r"\1: rows of which a value is clear", *_RISKED),
    _Wording(f"{_CLASS} negative", r"\1: rows without a likely value", *_RISKED),
    _Wording(f"{_CLASS} diversity", r"\1: least diversity of a class", *_SAFETY),
    _Wording(f"{_CLASS} closeness", r"\1: distance of classes from all", *_RISK),
    _Wording(r"risk uniqueness \[(.+)\] share", r"unique in the population, by \1", *_RISKED),
    _Wording(f"{_ATTACK} rate", r"attack is right: \1", *_RISKED),
    _Wording(f"{_ATTACK} {_BOUND}", r"bound of the attack: \1", *_RISKED),
    _Wording("loss ncp", "loss of all columns (NCP)", *_LOST),
    _Wording("loss weighted_ncp", "loss of all columns, weighted (NCP)", *_LOST),
    _Wording("loss columns (.+)", r"loss of \1", *_LOST),
    _Wording("label_loss (.+)", r"loss of \1 by its labels", *_LOST),
    _Wording("loss n_suppressed", "rows left out", *_LOSS),
    _Wording(f"{_APART} distance", r"\1: distance from the source", *_LOST),
    _Wording(f"{_APART} shift", r"\1: shift from the source", *_LOST),
    _Wording("utility associations .+ distance", "associations: from the source", *_LOSS),
    _Wording(f"{_ERROR} median", r"median error of COUNT queries true of \1", *_LOST),
    _Wording(f"{_ERROR} upper", r"95th percentile of errors of COUNT queries true of \1", *_LOST),
    _Wording(f"{_ERROR} imprecision", r"median imprecision of COUNT queries true of \1", *_LOST),
    _Wording(
        f"{_ERROR} imprecision_upper",
        r"95th percentile of the imprecision of COUNT queries true of \1",
        *_LOST,
    ),
    _Wording(rf"{_LEARNING} accuracy \[release\]", r"learned: \1, accuracy", *_USED),
    _Wording(rf"{_LEARNING} auc \[release\]", r"learned: \1, AUC", *_USE),
    *(
        _Wording(
            f"loss metrics {re.escape(name)}",
            meaning.title,
            *(_USE if name in _MORE_IS_BETTER else _LOSS),
        )
        for name, meaning in MEANINGS.items()
    ),
)
_ACHIEVED = re.compile(r"checks results \[([^,\]]+)(.*)\] (achieved|required)")


def read(path: Path, *, public: bool = False) -> dict[str, Any]:
    """Read a report from JSON; raises ConfigError if it is not a ``public`` one as required."""
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(unread(path, error), hint=converted(path, error) or _EARLIER) from None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not all(part in document for part in _PARTS):
        raise ConfigError(f"{path} holds no report as JSON", hint=_EARLIER)
    if public != (document.get("confidential", CONFIDENTIAL) is None):
        kind, other = ("confidential", "public") if public else ("public", "confidential")
        raise ConfigError(
            f"{path} holds a {kind} report, which is compared with no {other} one",
            hint=f"dbanon report RELATION --json{' --public' if public else ''} > before.json",
        )
    return document


def compare(before: dict[str, Any], now: dict[str, Any]) -> Differences:
    """Return the differences of two reports of one table, of any policies; raises ConfigError."""
    table, other = now.get("table"), before.get("table")
    if table != other:
        raise ConfigError(f"the earlier report is of {other}, and not of {table}", hint=_EARLIER)
    old, new = (dict(figures(document)) for document in (before, now))
    names = dict.fromkeys((*new, *old))
    found = [_difference(name, old, new) for name in names if old.get(name) != new.get(name)]
    return Differences(tuple(found), len(names) - len(found))


def _difference(name: str, old: Mapping[str, float], new: Mapping[str, float]) -> Difference:
    before, now = old.get(name), new.get(name)
    said = _in_words(name)
    if said is None:
        return Difference(name, before, now)
    change = None
    if before is not None and now is not None and _matters(name, old, new):
        change = said.larger if now > before else said.smaller
    return Difference(name, before, now, said.words, change, is_share=said.is_share)


def _in_words(name: str) -> _Wording | None:
    """Return the description of a figure, None for auxiliary ones."""
    found = _ACHIEVED.fullmatch(name)
    if found is not None and found[1] in MODELS:
        more = _SAFETY if MODELS[found[1]].bound is Bound.AT_LEAST else _RISK
        return _Wording(name, f"{found[1]}{found[2]}: {found[3]}", *more)
    for one in _WORDINGS:
        match = re.fullmatch(one.figure, name, re.DOTALL)
        if match is not None:
            return one._replace(words=match.expand(one.words))
    return None


def _matters(name: str, old: Mapping[str, float], new: Mapping[str, float]) -> bool:
    """Return True if a figure left its confidence interval and differs by over 1 %."""
    low, high = (old.get(name.removesuffix("rate") + end) for end in ("low", "high"))
    if low is not None and high is not None and low <= new[name] <= high:
        return False
    return abs(new[name] - old[name]) > _LEAST * abs(old[name])


def figures(document: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a report by name, those of column pairs once."""
    for part in (*_PARTS, _LABELS):
        yield from _figures(part, document.get(part))


def _figures(
    name: str, value: object, places: Sequence[object] = ()
) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        if abs(value) < _GREATEST:
            yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == _BOUND and item is None:
                yield f"{name} {key}", 1.0
            elif key not in _NAMES:
                yield from _figures(f"{name} {key}", item, _places(key, value))
        if "columns" in value:
            yield from _apart(name, value)
    elif isinstance(value, list):
        yield from _entries(name, value, places)


def _entries(
    name: str, value: Sequence[object], places: Sequence[object]
) -> Iterator[tuple[str, float]]:
    for number, item in enumerate(value):
        named = _named(item, places[number] if number < len(places) else number + 1)
        if isinstance(item, list):  # of a column and those after it, as before it is the same
            after = [None] * (number + 1)
            yield from _figures(f"{name} {named}", [*after, *item[number + 1 :]], places)
        else:
            yield from _figures(f"{name} {named}", item)


def _places(key: str, value: Mapping[str, object]) -> Sequence[object]:
    """Return names for the entries of a list, from the neighboring keys."""
    if key in ("accuracy", "auc"):
        return _LEARNED
    found = value.get("columns", value.get("bins"))
    return found if isinstance(found, list) else ()


def _apart(name: str, value: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    pairs = [dict(_figures("", value.get(part), ())) for part in ("source", "published")]
    gaps = [abs(pairs[1][one] - pairs[0][one]) for one in pairs[0] if one in pairs[1]]
    if gaps:
        yield f"{name} distance", sum(gaps) / len(gaps)


def _named(item: object, place: object) -> str:
    found = [item[key] for key in _NAMES if item.get(key)] if isinstance(item, dict) else []
    parts = [", ".join(map(str, part)) if isinstance(part, list) else str(part) for part in found]
    return f"[{', '.join(parts) or place}]"
