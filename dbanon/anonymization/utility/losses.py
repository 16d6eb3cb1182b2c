"""What is lost of columns, on the scale that a release shows.

A search divides by the range of the table. Told so, losses would say how far that reaches: the
value of the one person who is left out, or is in an open band, as the widths of labels are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dbanon.anonymization.utility.readings import opened, readings_of
from dbanon.domain.report.losses import told_share, unit_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dbanon.anonymization.released.cells import Released
    from dbanon.anonymization.utility.readings import Line, Reading
    from dbanon.domain.assignment import LossReport

    Floats = NDArray[np.float64]

_WIDER = 2.5  # of two halves of a step and what rounding adds


def on_shown_scale(loss: LossReport, released: Released, *, least: int) -> LossReport:
    """Return a loss whose lines are as long, and whose sets as large, as all labels together show.

    Taxonomies are as large as they are: what is lost of such columns stays as it is. Labels that
    stand for a class have no width of their own; what is lost of such columns is told in steps of
    what ``least`` rows weigh. A suppressed row loses everything.
    """
    points = {column.name for column in released.columns if column.is_point}
    published = loss.n_rows - loss.n_suppressed
    columns = dict(loss.columns)
    for reading in readings_of(released):
        lost = None if reading.name in points else _lost(reading)
        if reading.name in columns and lost is not None:
            mean = float(reading.of_labels @ lost) / max(float(reading.of_labels.sum()), 1.0)
            columns[reading.name] = (mean * published + loss.n_suppressed) / max(loss.n_rows, 1)
    for name in points & columns.keys() if least > 1 else ():
        columns[name] = told_share(columns[name], unit=unit_of(least, published))
    if not columns:
        return loss
    weights = {column.name: column.rule.weight for column in released.table.quasi}
    weighted = sum(weights[name] * lost for name, lost in columns.items()) / sum(weights.values())
    return replace(
        loss,
        columns=columns,
        ncp=sum(columns.values()) / len(columns),
        weighted_ncp=None if loss.weighted_ncp is None else weighted,
    )


def _lost(reading: Reading) -> Floats | None:
    """Return the share of each label, (n_labels,), None of what is on no line and in no set."""
    if reading.members is not None and reading.start is not None:
        size = np.diff(reading.start)
        return np.where(size > 1, size / max(len(np.unique(reading.members)), 1), 0.0)
    return None if reading.line is None else _of_ranges(reading, reading.line)


def _of_ranges(reading: Reading, line: Line) -> Floats:
    """Return the share of the line from the least end that is shown to the greatest.

    A value alone has no length, but a band has. What has no end at all has lost everything.
    """
    codes = line.ends - line.begins
    step = 2.0 * line.half if np.nanmax(codes) <= _WIDER * line.half else 0.0
    span = line.reach - step
    width = np.nan_to_num(line.high - line.low - step)
    share = np.clip(width / span, 0.0, 1.0) if span > 0.0 else np.zeros(len(width))
    says_nothing = opened(reading.texts).all(axis=0) & np.isfinite(line.low)
    return np.where(says_nothing, 1.0, share)
