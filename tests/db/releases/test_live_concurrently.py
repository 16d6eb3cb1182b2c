"""A short run of the benchmark that writes from many sides while a reader verifies."""

from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_no_read_finds_a_class_that_fails_while_eight_write(database, monkeypatch, capsys):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import concurrency

    concurrency.prepare(database.settings)
    tally = concurrency.run(database.settings, 8, 3)
    assert concurrency.report(tally, 3)
    assert tally.counts["failing reads"] == 0
    assert tally.counts["reads"] > tally.counts["empty reads"]
    assert "failing reads                    0" in capsys.readouterr().out
