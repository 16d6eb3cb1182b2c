"""COUNT queries of the algorithms' releases: a range of ages and some values of another column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from samples.datasets import load

from analysts.releases import AGE, SETTINGS, domain, releases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysts.releases import Release

SELECTIVITIES = (0.005, 0.01, 0.05)
NEAR = 0.1
SEED = 7


class Question(NamedTuple):
    """Whom a query asks for: places of the values wanted, ages from low to high; how many."""

    column: str
    wanted: list[int]
    low: int
    high: int
    count: int


def draw(table, share: float, n: int) -> list[Question]:
    """Return n random queries that about this share of the rows answer.

    One to three random values of a random column and a random least age; the greatest age is the
    first by which enough rows are in. Queries further than a tenth from the share are drawn anew.
    """
    random = np.random.default_rng(SEED)
    ages = table.source[AGE].to_numpy()
    rows = {name: _places(table, name) for name in sorted(table.trees)}
    names, aim = sorted(rows), share * len(ages)
    found: list[Question] = []
    while len(found) < n:
        name = names[random.integers(len(names))]
        values = len(domain(table, name))
        wanted = random.choice(values, min(values, random.integers(1, 4)), replace=False)
        low = int(random.integers(ages.min(), ages.max() + 1))
        own = np.sort(ages[np.isin(rows[name], wanted) & (ages >= low)])
        if len(own) < aim:
            continue
        high = int(own[int(np.ceil(aim)) - 1])
        count = int((own <= high).sum())
        if count <= (1 + NEAR) * aim:
            found.append(Question(name, wanted.tolist(), low, high, count))
    return found


def _places(table, name):
    place = {value: i for i, value in enumerate(domain(table, name))}
    return np.array([place[value] for value in table.source[name].to_pylist()])


def errors(release: Release, questions: list[Question]) -> np.ndarray:
    """Return the relative error of the estimate of each query."""
    least = release.values[AGE][0]
    until = np.pad(np.cumsum(release.shares[AGE], axis=1), ((0, 0), (1, 0)))
    answers = []
    for asked in questions:
        of_age = until[:, asked.high + 1 - least] - until[:, asked.low - least]
        of_value = release.shares[asked.column][:, asked.wanted].sum(axis=1)
        answers.append(float((release.size * of_age * of_value).sum()))
    truth = np.array([asked.count for asked in questions])
    return np.abs(np.array(answers) - truth) / truth


def lines(queries: int) -> Iterator[dict[str, object]]:
    """Yield for each setting and algorithm the errors of so many queries of each selectivity."""
    questions = [draw(load("adult"), share, queries) for share in SELECTIVITIES]
    for setting in SETTINGS:
        for name, _, release in releases(setting):
            line = {"k": setting.k, "l": setting.l, "algorithm": name, "NCP %": 100 * release.ncp}
            for share, asked in zip(SELECTIVITIES, questions, strict=True):
                off = 100 * errors(release, asked)
                line[f"median at {100 * share:g} %"] = float(np.median(off))
                line[f"95th at {100 * share:g} %"] = float(np.percentile(off, 95))
            yield line
