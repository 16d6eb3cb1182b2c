import dataclasses
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import matplotlib.image
import pytest
from matplotlib.figure import Figure

from dbanon.actions.compare import Compared, Comparison
from dbanon.actions.releases.ledger import History, HistoryEntry
from dbanon.cli.terminal import plot
from dbanon.domain.assignment import LossReport
from dbanon.domain.errors import ConfigError
from dbanon.domain.release import Against, Composition
from dbanon.domain.table import TableName


def compared(name, k, ncp):
    loss = LossReport(100, 0, 10, k, ncp, {"x": ncp}, {})
    return Compared(name, k, loss=loss, seconds=0.1)


def comparison(*results, l_columns=()):
    ks = tuple(sorted({result.k for result in results}))
    return Comparison(PEOPLE, 100, 2, ks, results, l_columns)


PEOPLE = TableName("public", "people")
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
    plot.draw_comparison(comparison(*RESULTS), tmp_path / "loss.png")
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


@pytest.mark.exhaustive
def test_forty_lines_are_told_apart(figures, tmp_path):
    names = [f"algorithm-{i}" for i in range(40)]
    found = comparison(*[compared(name, 2, 0.1) for name in names])
    plot.draw_comparison(found, tmp_path / "loss.svg")
    looks = {(a.get_color(), a.get_marker(), a.get_linestyle()) for a in figures[0].axes[0].lines}
    assert 40 == len(looks)


@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_comparison_gives_the_same_file(tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        plot.draw_comparison(comparison(*RESULTS), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_nothing_but_refusals_gives_empty_axes(figures, tmp_path):
    plot.draw_comparison(comparison(RESULTS[-1]), tmp_path / "loss.svg")
    assert [] == figures[0].legends


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "loss.svg").mkdir()
    with pytest.raises(ConfigError, match="is no file"):
        plot.draw_comparison(comparison(*RESULTS), tmp_path / "loss.svg")


@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_drawing_is_known_as_one_of_dbanon_and_nothing_else_is(tmp_path, suffix):
    path, other = tmp_path / f"loss.{suffix}", tmp_path / f"other.{suffix}"
    for found in (comparison(RESULTS[-1]), comparison(*RESULTS)):
        plot.draw_comparison(found, path)
    plot.draw_comparison(comparison(*RESULTS), tmp_path / f"again.{suffix}")
    assert path.read_bytes() == (tmp_path / f"again.{suffix}").read_bytes()
    figure = Figure()
    figure.savefig(other)
    before = other.read_bytes()
    with pytest.raises(ConfigError, match="is a file that is no drawing of dbanon"):
        plot.draw_history(TWO_VIEWS, other)
    assert before == other.read_bytes()


@pytest.mark.exhaustive
def test_settings_in_the_current_folder_draw_nothing(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 99\n")
    drawn = []
    for folder in (tmp_path, tmp_path / "plain"):
        folder.mkdir(exist_ok=True)
        code = (
            "import sys; from pathlib import Path\n"
            f"sys.path[:0] = [{str(Path(__file__).parent)!r}]\n"
            "import test_plot\n"
            "found = test_plot.comparison(*test_plot.RESULTS)\n"
            "test_plot.plot.draw_comparison(found, Path('loss.svg'))\n"
        )
        subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, check=True)
        drawn.append((folder / "loss.svg").read_bytes())
    assert drawn[0] == drawn[1]


def test_a_name_is_not_taken_for_mathematics(figures, tmp_path):
    found = dataclasses.replace(comparison(*RESULTS), table=TableName("public", "b${x$"))
    plot.draw_comparison(found, tmp_path / "loss.svg")
    assert "b${x$" in figures[0].axes[0].get_title()


def chapter(number, published, *, view="people", left_out=0, smallest=5, series=0):
    return HistoryEntry(
        release=number,
        relation=TableName("anon", view),
        policy="default",
        served=True,
        published=published,
        left_out=left_out,
        smallest_class=smallest,
        ncp=number / 100,
        changed=None,
        series=series,
        created_at=datetime(2026, number, 1, tzinfo=UTC),
    )


def history_of(*chapters, table=PEOPLE, against=()):
    """Newest first, as an action returns it."""
    numbers = tuple(one.release for one in chapters)
    found = Composition(table, 100, numbers, (), (), tuple(against))
    return History(tuple(reversed(chapters)), (found,))


TWO_VIEWS = history_of(
    chapter(1, 90, left_out=10),
    chapter(2, 60, view="others", left_out=40, smallest=7),
    chapter(3, 95, left_out=8, smallest=6),
    against=[Against(1, TableName("anon", "people"), 100, 90, 5, 2, 4, ())],
)


def test_releases_are_drawn_over_time_a_line_for_each_relation(figures, tmp_path):
    plot.draw_history(TWO_VIEWS, tmp_path / "history.png")
    rows, classes, loss = figures[0].axes
    drawn = [
        [line.get_ydata().tolist() for line in axes.lines if line.get_linestyle() == style]
        for axes in (rows, classes, loss)
        for style in ("-", ":")
    ]
    assert [[90, 95], [60]] == drawn[0]
    assert [[10, 8], [40]] == drawn[1]
    assert [[5, 6], [7]] == drawn[2]
    assert [[2]] == drawn[3]  # of the first release, beside the newest
    assert ([[1, 3], [2]], []) == (drawn[4], drawn[5])
    assert {"1", "2", "3"} == {text.get_text() for text in rows.texts}
    assert "Releases of public.people" == rows.get_title()
    (legend,) = figures[0].legends
    assert ["anon.people", "anon.others"] == [text.get_text() for text in legend.get_texts()]
    assert all(axes.get_ylabel() for axes in figures[0].axes)
    assert loss.get_xlabel() == "published, UTC"
    assert matplotlib.image.imread(tmp_path / "history.png").shape[:2] == (1200, 1200)


@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_history_gives_the_same_file(tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        plot.draw_history(TWO_VIEWS, file)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.exhaustive
def test_one_release_of_an_odd_name_is_drawn(figures, tmp_path):
    odd = TableName("public", "b${x$")
    plot.draw_history(history_of(chapter(1, 90, view="b${x$"), table=odd), tmp_path / "h.svg")
    assert "b${x$" in figures[0].axes[0].get_title()


@pytest.mark.exhaustive
def test_a_series_is_a_line_of_its_own(figures, tmp_path):
    found = history_of(chapter(1, 90), chapter(2, 80, series=2), chapter(3, 85, series=2))
    plot.draw_history(found, tmp_path / "h.svg")
    (legend,) = figures[0].legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert ["anon.people", "anon.people, series 2"] == labels
    assert [[90], [80, 85]] == [
        line.get_ydata().tolist()
        for line in figures[0].axes[0].lines
        if line.get_linestyle() == "-"
    ]


def test_many_releases_are_not_numbered(figures, tmp_path):
    chapters = [chapter(1 + i % 12, 90) for i in range(25)]
    plot.draw_history(history_of(*chapters), tmp_path / "h.svg")
    assert [] == list(figures[0].axes[0].texts)
