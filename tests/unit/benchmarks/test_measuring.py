"""How the benchmarks run a command: that of the checkout that is meant."""

import importlib
import sys
from importlib import metadata
from pathlib import Path

import pytest


@pytest.fixture
def measuring(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("measuring")


@pytest.fixture
def another(tmp_path):
    """Return a checkout with a package and a Python of its own."""
    (tmp_path / "dbanon").mkdir()
    (tmp_path / "dbanon/__init__.py").touch()
    (tmp_path / "dbanon/__main__.py").write_text("print('another')")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    python = tmp_path / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


def test_a_command_is_that_of_a_checkout_in_whatever_folder(measuring, another, monkeypatch):
    version = f"dbanon {metadata.version('dbanon')}"
    monkeypatch.chdir(another)
    assert measuring.measure("--version").output.startswith(version)
    monkeypatch.chdir(Path(__file__).parents[3])
    with measuring.by_checkout(another):
        assert "another\n" == measuring.measure("--version").output
    assert measuring.measure("--version").output.startswith(version)
