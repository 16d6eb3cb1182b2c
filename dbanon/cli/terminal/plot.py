"""Drawings: the loss of algorithms against k, and the releases of a table over time."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from importlib.metadata import version
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING

from dbanon.domain import errors
from dbanon.pages import files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dbanon.actions.compare import Comparison
    from dbanon.actions.releases.ledger import History, HistoryEntry
    from dbanon.domain.table import TableName

# Okabe and Ito's colours for color-blind readers, without yellow, which is invisible on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
_LINES = ("-", "--", "-.", ":")
_SETTINGS = {"svg.hashsalt": "dbanon", "date.converter": "concise"}
_MOST_NUMBERED = 24  # maximum number of releases with labels


def require(path: Path, *, example: str) -> None:
    """Raise ConfigError if nothing can be drawn there, before any computation."""
    files.require(path, files.DRAWING, example=example)
    errors.require_library("matplotlib", what="drawing")


def draw_comparison(found: Comparison, path: Path) -> None:
    """Write the drawing of a comparison; equal comparisons give equal files."""
    with _written(path, height=5.0) as figure:
        axes = figure.add_subplot()
        _lines(axes, found)
        _label(axes, found)
        if axes.lines:
            figure.legend(loc="outside right upper", frameon=False, handlelength=3.0)


def draw_history(found: History, path: Path) -> None:
    """Write the drawing of a history: a line for each relation and each of its series."""
    smallest = {pair.release: pair.smallest for one in found.compositions for pair in one.against}
    lines: dict[tuple[TableName, int | None], list[HistoryEntry]] = defaultdict(list)
    for entry in reversed(found.entries):
        lines[entry.relation, entry.series].append(entry)
    with _written(path, height=8.0) as figure:
        rows, classes, loss = figure.subplots(3, sharex=True)
        looks = zip(lines.items(), cycle(_COLOURS), cycle(_MARKERS), strict=False)
        for ((relation, series), entries), colour, marker in looks:
            look = {"color": colour, "marker": marker}
            hollow = {**look, "markerfacecolor": "white", "linestyle": ":"}
            dates = [entry.created_at for entry in entries]
            name = f"{relation}, series {series}" if series else str(relation)
            rows.plot(dates, [c.published for c in entries], label=name, **look)
            rows.plot(dates, [c.left_out for c in entries], **hollow)
            classes.plot(dates, [c.smallest_class for c in entries], **look)
            loss.plot(dates, [100 * c.ncp for c in entries], **look)
            held = [c for c in entries if c.release in smallest]
            if held:
                sizes = [smallest[c.release] for c in held]
                classes.plot([c.created_at for c in held], sizes, **hollow)
        _label_history((rows, classes, loss), found)
        legend = figure.legend(loc="outside lower center", frameon=False, ncols=2)
        for text in legend.get_texts():
            text.set_parse_math(False)  # a name may hold a dollar sign


@contextmanager
def _written(path: Path, *, height: float) -> Iterator[Figure]:
    """Create an empty drawing, and write it at the end of the block.

    Uses the library's own settings: a file in the current directory could run names through LaTeX.
    """
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style.context(["default", _SETTINGS]):
        figure = Figure(figsize=(8.0, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        suffix, content = path.suffix.lower(), BytesIO()
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=_metadata(suffix))
        files.write(content.getvalue(), path, files.DRAWING)


def _metadata(suffix: str) -> dict[str, str | None]:
    name = f"dbanon {version('dbanon')}"
    found: dict[str, dict[str, str | None]] = {
        ".svg": {"Creator": name, "Date": None},
        ".pdf": {"Creator": name, "CreationDate": None},
        ".png": {"Software": name},
    }
    return found[suffix]


def _lines(axes: Axes, found: Comparison) -> None:
    names = dict.fromkeys(result.algorithm for result in found.results)
    looks = zip(names, cycle(_COLOURS), cycle(_MARKERS), cycle(_LINES), strict=False)
    for name, colour, marker, line in looks:
        points = [
            (result.k, 100 * result.loss.asked)
            for result in found.results
            if result.algorithm == name and result.loss is not None
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                label=name,
                color=colour,
                marker=marker,
                markeredgecolor="white",
                linestyle=line,  # so that a line shows through one that lies on it
            )


def _label(axes: Axes, found: Comparison) -> None:
    title = f"Loss of {found.table} ({found.n_rows:,} rows{found.diversity})"
    axes.set_title(title, parse_math=False)  # a name may hold a dollar sign
    axes.set_xlabel("k, the least number of rows in a class")
    weighted = "weighted " if found.is_weighted else ""
    axes.set_ylabel(f"{weighted}NCP in % (0 is exact, 100 contains no information)")
    axes.set_xscale("log")
    axes.set_xticks(found.ks, labels=[str(k) for k in found.ks])
    axes.minorticks_off()
    _lay_out(axes)


def _label_history(panels: tuple[Axes, Axes, Axes], found: History) -> None:
    rows, classes, loss = panels
    title = f"Releases of {found.compositions[0].table}"
    rows.set_title(title, parse_math=False)  # a name may hold a dollar sign
    rows.set_ylabel("rows\n(hollow: left out)")
    classes.set_ylabel("smallest class\n(hollow: beside the newest)")
    loss.set_ylabel("NCP in %")
    loss.set_xlabel("published, UTC")
    for axes in panels:
        _lay_out(axes)
    if len(found.entries) <= _MOST_NUMBERED:
        for entry in found.entries:
            place = (entry.created_at, entry.published)
            rows.annotate(str(entry.release), place, (0, 5), textcoords="offset points")


def _lay_out(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
