"""The drawing of a comparison: loss against k, a line for each algorithm."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.text import command

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from dbanon.actions.compare import Comparison

_KINDS = (".png", ".svg", ".pdf")
# Okabe and Ito's colours, which the colour-blind tell apart; a yellow line on white nobody sees.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
_LINES = ("-", "--", "-.", ":")


def require(path: Path) -> None:
    """Raise ConfigError when nothing could be drawn there, before anything is computed."""
    if path.suffix.lower() not in _KINDS:
        raise ConfigError(f"cannot draw {path}", hint="--plot loss.svg, or .png, or .pdf")
    if not path.absolute().parent.is_dir():
        raise ConfigError(
            f"there is no folder {path.absolute().parent}", hint=command("mkdir -p", path.parent)
        )
    try:
        import matplotlib as mpl  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise ConfigError(
            "drawing needs matplotlib, which is not installed", hint="pip install 'dbanon[plot]'"
        ) from None


def draw(found: Comparison, path: Path) -> None:
    """Write the drawing; the same comparison gives the same file.

    Matplotlib reads settings from the current folder, where anybody may have written them: one of
    them has LaTeX set the names in the title. The drawing is made by the library's own.
    """
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style.context(["default", {"svg.hashsalt": "dbanon"}]):
        figure = Figure(figsize=(8.0, 5.0), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _lines(axes, found)
        _label(axes, found)
        if axes.lines:
            figure.legend(loc="outside right upper", frameon=False, handlelength=3.0)
        undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        try:
            figure.savefig(path, dpi=150, metadata=undated.get(path.suffix.lower()))
        except OSError as error:
            raise ConfigError(
                f"cannot write {path}: {error.strerror}", hint="--plot another/loss.svg"
            ) from None


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
    axes.set_ylabel(f"{weighted}NCP in % (0 is exact, 100 says nothing)")
    axes.set_xscale("log")
    axes.set_xticks(found.ks, labels=[str(k) for k in found.ks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
