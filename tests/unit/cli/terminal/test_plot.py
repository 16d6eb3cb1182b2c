import dataclasses
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest
from matplotlib.figure import Figure

from dbanon.actions.compare import Compared, Comparison
from dbanon.cli.terminal import plot
from dbanon.domain.assignment import LossReport
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName


def compared(name, k, ncp):
    loss = LossReport(100, 0, 10, k, ncp, {"x": ncp}, {})
    return Compared(name, k, loss=loss, seconds=0.1)


def comparison(*results, l_columns=()):
    ks = tuple(sorted({result.k for result in results}))
    return Comparison(TableName("public", "people"), 100, 2, ks, results, l_columns)


RESULTS = (
    compared("auto", 2, 0.01),
    compared("mdav", 2, 0.02),
    compared("auto", 5, 0.03),
    compared("mdav", 5, 0.05),
    Compared("lattice", 2, reason="takes at most 10 rows"),
)


@pytest.fixture
def figures(monkeypatch):
    """Every figure that is saved, as it is when it is."""
    saved = []
    original = Figure.savefig
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda self, *args, **kwargs: saved.append(self) or original(self, *args, **kwargs),
    )
    return saved


def test_loss_is_drawn_against_k_with_axes_that_say_so(figures, tmp_path):
    plot.draw(comparison(*RESULTS), tmp_path / "loss.png")
    (axes,) = figures[0].axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert {"auto": [[2, 1], [5, 3]], "mdav": [[2, 2], [5, 5]]} == lines
    assert "Loss of public.people (100 rows, l = 2)" == axes.get_title()
    of_one = comparison(*RESULTS, l_columns=("disease",))
    assert ", l = 2 (disease)" == of_one.diversity
    assert axes.get_xlabel().startswith("k, ")
    assert axes.get_ylabel().startswith("NCP in %")
    assert ["2", "5"] == [label.get_text() for label in axes.get_xticklabels()]
    (legend,) = figures[0].legends
    assert ["auto", "mdav"] == [text.get_text() for text in legend.get_texts()]
    assert matplotlib.image.imread(tmp_path / "loss.png").shape[:2] == (750, 1200)


def test_forty_lines_are_told_apart(figures, tmp_path):
    names = [f"algorithm-{i}" for i in range(40)]
    found = comparison(*[compared(name, 2, 0.1) for name in names])
    plot.draw(found, tmp_path / "loss.svg")
    looks = {(a.get_color(), a.get_marker(), a.get_linestyle()) for a in figures[0].axes[0].lines}
    assert 40 == len(looks)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_comparison_gives_the_same_file(tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        plot.draw(comparison(*RESULTS), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_nothing_but_refusals_gives_empty_axes(figures, tmp_path):
    plot.draw(comparison(RESULTS[-1]), tmp_path / "loss.svg")
    assert [] == figures[0].legends


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "loss.svg").mkdir()
    with pytest.raises(ConfigError, match="cannot write"):
        plot.draw(comparison(*RESULTS), tmp_path / "loss.svg")


def test_settings_in_the_current_folder_draw_nothing(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 99\n")
    drawn = []
    for folder in (tmp_path, tmp_path / "plain"):
        folder.mkdir(exist_ok=True)
        code = (
            "import sys; from pathlib import Path\n"
            f"sys.path[:0] = [{str(Path(__file__).parent)!r}]\n"
            "import test_plot\n"
            "test_plot.plot.draw(test_plot.comparison(*test_plot.RESULTS), Path('loss.svg'))\n"
        )
        subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, check=True)
        drawn.append((folder / "loss.svg").read_bytes())
    assert drawn[0] == drawn[1]


def test_a_name_is_not_taken_for_mathematics(figures, tmp_path):
    found = dataclasses.replace(comparison(*RESULTS), table=TableName("public", "b${x$"))
    plot.draw(found, tmp_path / "loss.svg")
    assert "b${x$" in figures[0].axes[0].get_title()
