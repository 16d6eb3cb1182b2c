import os
import subprocess
import sys

from numba.core import config

from dbanon.kernels import compile as compiling

CODE = """
import numpy as np
from dbanon.kernels.boxes import group_boxes
from numba.core import config
from dbanon.kernels.compile import on_compile
told = []
with on_compile(lambda: told.append(1)):
    lo, hi, size = group_boxes(np.zeros((2, 1), np.int32), np.zeros(2, np.int32), 1)
print(size.tolist(), repr(config.CACHE_DIR), "compiled" if told else "cached")
"""


def run(**environment):
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip()


def test_compiled_code_is_kept_in_the_user_cache_and_the_setting_is_put_back(tmp_path):
    assert "[2] '' compiled" == run(XDG_CACHE_HOME=str(tmp_path))
    assert list(tmp_path.glob("dbanon/numba/boxes-*/**/*.nbi"))
    assert "[2] '' cached" == run(XDG_CACHE_HOME=str(tmp_path))


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "[2] '' compiled" == run(XDG_CACHE_HOME=str(blocked))


def test_the_folder_that_the_user_names_is_taken(tmp_path):
    assert f"[2] '{tmp_path}' compiled" == run(NUMBA_CACHE_DIR=str(tmp_path))
    assert list(tmp_path.rglob("*.nbi"))


def test_a_folder_of_somebody_else_is_not_trusted(tmp_path, monkeypatch):
    folder = compiling.cache_folder.__wrapped__
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert str(tmp_path) in folder("boxes")
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    assert folder("boxes") is None
