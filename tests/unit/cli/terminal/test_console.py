import io
from functools import partial
from time import sleep

import pytest
import typer
from rich.console import Console

from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.cli.terminal.console import Lines


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal that keeps what is drawn."""
    drawn = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(console, "err", lambda: drawn)
    return drawn


def test_a_terminal_sees_the_stage_and_the_loss_so_far(terminal):
    with console.watched(timings=False, steps=2) as stages, stages("cluster"):
        stages.progress(0.5, 0.0412)
    assert "cluster, loss 4.12%" in terminal.file.getvalue()


def test_a_terminal_sees_the_step_of_a_stage(terminal):
    with console.watched(timings=False, steps=2) as stages, stages("cluster"):
        stages.step("enforce")
    assert "cluster: enforce" in terminal.file.getvalue()


def test_a_short_command_prints_no_progress_without_a_terminal(capsys):
    with console.watched(timings=False, steps=2) as stages, stages("cluster"):
        stages.progress(0.5, 0.04)
    assert ("", "") == capsys.readouterr()


def test_a_long_command_prints_a_line_for_each_stage_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(console, "Lines", partial(Lines, after=0))
    with console.watched(timings=False, steps=2) as stages:
        with stages("read"):
            pass
        with stages("cluster"):
            stages.step("enforce")
            stages.progress(0.5, 0.0412)
            sleep(0.5)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert "" == out
    assert {"0 s: read", "0 s: cluster"} <= {*lines}
    assert any(line.endswith(": cluster: enforce, loss 4.12%") for line in lines)
    assert len(lines) < 40  # again only whenever the time has doubled


def test_a_quiet_command_prints_no_progress(capsys, monkeypatch):
    monkeypatch.setattr(console, "Lines", partial(Lines, after=0))
    with console.watched(timings=False, steps=2, quiet=True) as stages, stages("cluster"):
        sleep(0.1)
    assert ("", "") == capsys.readouterr()


def test_a_quiet_command_does_not_say_why_it_takes_long(capsys):
    for quiet, told in ((True, ""), (False, "compiling")):
        with console.watched(timings=False, steps=2, quiet=quiet) as stages:
            stages.note("compiling")
        assert told == capsys.readouterr().err.strip()


def test_the_bar_grows_within_a_stage():
    class Progress:
        def __init__(self):
            self.completed = []

        def update(self, _, *, description, completed):
            self.completed.append((description, completed))

    progress = Progress()
    bar = console._Bar(progress, 0)  # noqa: SLF001 - what it draws is seen by nobody else
    bar.start("read")
    bar.start("cluster")
    bar.move(0.5, 0.25)
    bar.start("recode")
    expected = [("read", 0), ("cluster", 1), ("cluster, loss 25.00%", 1.5), ("recode", 2)]
    assert expected == progress.completed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("2m", 120), ("500ms", 0.5), ("1h", 3600), ("45", 45), ("1.5 m", 90), ("2S", 2)],
)
def test_a_time_is_read_with_its_unit(text, seconds):
    assert seconds == pytest.approx(options.duration(text))


@pytest.mark.parametrize("text", ["", "s", "0", "0ms", "-3s", "2 weeks", "nan", "1e3", "9" * 400])
def test_what_is_no_time_is_refused_with_examples(text):
    with pytest.raises(typer.BadParameter, match="write 30s, 2m or 500ms"):
        options.duration(text)


def test_the_shell_completes_names_of_algorithms():
    assert ["mondrian", "mondrian-relaxed"] == options.complete_name("mond")
    assert ["mdav,auto"] == options.complete_names("mdav,au")
