"""Compiling a round of the search beside what is needed before it."""

import sys
from contextlib import contextmanager
from time import monotonic

import numpy as np
import pytest
from builders import encoded

from dbanon.anonymization.auto import algorithm, rounds, start
from dbanon.anonymization.auto.algorithm import Auto
from dbanon.anonymization.interfaces import Requirement
from dbanon.domain.outcomes import Stages
from dbanon.kernels import compilation
from dbanon.kernels.auto.blocks import cut_blocks
from dbanon.kernels.auto.improve import improve_block
from dbanon.kernels.auto.pools import start_segment
from dbanon.kernels.compilation import on_compile


def search(*, k=5, **options):
    ages = np.random.default_rng(0).integers(0, 90, 60).tolist()
    columns = {"age": ages, "sex": ["f", "m", None] * 20}
    table = encoded(columns, sensitive={"ill": ["a", "b", "c", "d"] * 15})
    return Auto(**options).assign(table, Requirement(k, 3), seed=1)


def test_who_waits_for_a_compilation_is_told(monkeypatch):
    @contextmanager
    def compiling(tell):
        with on_compile(tell) as compiled:
            tell()
            yield compiled

    monkeypatch.setattr(compilation, "on_compile", compiling)
    told = []
    search(stages=Stages(on_step=told.append))
    assert "compile, once on a machine" == told[0]


@pytest.mark.parametrize("k", [5, 20])
def test_a_compiled_round_is_the_one_that_a_search_calls(k):
    rounds.compile_round(carved=k == 20)
    kernels = improve_block, cut_blocks, start_segment
    known = [len(kernel.signatures) for kernel in kernels]
    search(k=k)
    assert known == [len(kernel.signatures) for kernel in kernels]


@pytest.fixture
def uncached(monkeypatch, tmp_path):
    """Have a cold cache, and another process that runs a script of the test's."""
    monkeypatch.setattr(compilation, "is_cached", lambda _: False)
    monkeypatch.setattr(rounds, "processors", lambda: 2)

    def run(script):
        file = tmp_path / "python"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(file))
        return tmp_path

    return run


def test_the_block_ends_when_the_other_process_has(uncached):
    folder = uncached('sleep 0.3; touch "$(dirname "$0")/done"')
    told = []
    with on_compile(lambda: told.append("compiling")) as compiled, rounds.rounds_made_ready():
        assert not (folder / "done").exists()
    assert (folder / "done").exists()
    assert ["compiling"] == told
    assert compiled.seconds > 0.1


def test_no_round_is_run_before_the_other_process_has_ended(uncached, monkeypatch):
    folder, seen = uncached('sleep 0.3; touch "$(dirname "$0")/done"'), []
    improve = rounds.improve

    def spied(*given, **named):
        seen.append((folder / "done").exists())
        return improve(*given, **named)

    for module in (start, algorithm):
        monkeypatch.setattr(module, "improve", spied)
    search()
    assert {True} == set(seen)


@pytest.mark.exhaustive
def test_another_process_that_fails_is_no_error(uncached):
    expected = search()
    uncached("exit 1")
    assert expected.group.tolist() == search().group.tolist()


def test_an_error_does_not_wait_for_the_other_process(uncached):
    uncached("exec sleep 60")
    began = monotonic()
    with pytest.raises(KeyboardInterrupt), rounds.rounds_made_ready():
        raise KeyboardInterrupt
    assert monotonic() - began < 30
