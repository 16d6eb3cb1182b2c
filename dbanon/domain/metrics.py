"""What the metrics of a publication mean, for whoever reads their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Meaning(NamedTuple):
    """The title of a metric, and what its number says in one line."""

    title: str
    line: str


MEANINGS: Mapping[str, Meaning] = {
    "il": Meaning("information loss", "rows x columns, each by how wide its class is; 0 is exact"),
    "iloss": Meaning("ILoss", "the other values that each published value stands for; 0 is exact"),
    "discernibility": Meaning("discernibility", "sum of squared class sizes; less is finer"),
    "c-avg": Meaning("average class", "rows of a class"),
    "c-avg-normalized": Meaning("average class / k", "1 is best: no class is larger than it must"),
    "cm": Meaning("classification", "share of rows unlike most of their class in the class label"),
    "suppressed": Meaning("rows left out", "share of rows that are not published at all"),
    "suppressed-cells": Meaning(
        "inexact cells", "cells in which rows of a class differ, and those of rows left out"
    ),
    "sse-ratio": Meaning("SSE / SST", "variation of numbers and dates lost within classes, in %"),
}
"""By the name under which a report has the metric."""
