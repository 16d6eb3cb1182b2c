import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dbanon
from dbanon.kernels import compilation

CODE = """
import resource
import sys
if limit := [int(word) for word in sys.argv[1:]]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit[0], limit[0]))
import numpy as np
from dbanon.kernels.boxes.costs import group_boxes
from numba.core import config
from dbanon.kernels.compilation import on_compile
told = []
with on_compile(lambda: told.append(1)):
    lo, hi, size = group_boxes(np.zeros((2, 1), np.int32), np.zeros(2, np.int32), 1)
print(size.tolist(), repr(config.CACHE_DIR), "compiled" if told else "cached")
"""
CALLER = """
import numpy as np
from llvmlite import binding
parse, parsed = binding.parse_bitcode, []
binding.parse_bitcode = lambda code: parsed.append(1) or parse(code)
from dbanon.kernels.boxes.costs import group_boxes
codes, groups = np.array([[3], [5]], np.int32), np.zeros(2, np.int32)
lo, hi, size = group_boxes(codes, groups, 1)
print(lo.tolist(), hi.tolist(), size.tolist(), len(parsed))
from numba import njit
@njit
def of_two(codes, groups, size):
    return group_boxes(codes, groups, size)[1] + group_boxes(codes, groups, size)[1]
print(of_two(codes, groups, 1).tolist(), len(parsed))
"""
# What numba needs of PyYAML; JSON is YAML as well.
YAML = "import json\n\ndef safe_load(file):\n    return json.load(file)\n"


def run(*arguments, cwd=None, code=CODE, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    result = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", code, *arguments],
        env=inherited | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.strip()


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A folder in which code was kept once, and what was printed of it."""
    folder = tmp_path_factory.mktemp("once")
    return folder, run(XDG_CACHE_HOME=str(folder))


@pytest.fixture
def kept(once, tmp_path):
    """A copy of that folder."""
    shutil.copytree(once[0], tmp_path / "kept")
    return tmp_path / "kept"


def test_compiled_code_is_kept_in_the_user_cache_and_the_setting_is_put_back(once, kept):
    assert "[2] '' compiled" == once[1]
    assert list(kept.glob("dbanon/numba/boxes.costs-*/*.nbi"))
    assert "[2] '' cached" == run(XDG_CACHE_HOME=str(kept))


def test_the_bitcode_of_a_cached_kernel_is_parsed_when_a_kernel_that_calls_it_is_compiled(kept):
    printed = run(XDG_CACHE_HOME=str(kept), code=CALLER).splitlines()
    assert ["[[3]] [[5]] [2] 0", "[[10]] 1"] == printed


@pytest.mark.exhaustive
def test_another_copy_of_the_sources_takes_the_code_that_is_kept(kept, tmp_path):
    here = Path(dbanon.__file__).parent
    shutil.copytree(here, tmp_path / "copy" / "dbanon", copy_function=shutil.copyfile)
    assert "[2] '' cached" == run(
        XDG_CACHE_HOME=str(kept), PYTHONPATH=str(tmp_path / "copy"), PYTHONDONTWRITEBYTECODE="1"
    )


@pytest.mark.exhaustive
def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "[2] '' compiled" == run(XDG_CACHE_HOME=str(blocked))


READ_ONLY = f"""
import tempfile
def refuse(*arguments, **named):
    raise OSError({errno.EROFS}, "Read-only file system")
tempfile.TemporaryFile = refuse
"""


@pytest.mark.exhaustive
def test_a_cache_that_can_be_read_only_is_read(kept, monkeypatch):
    monkeypatch.setitem(globals(), "CODE", READ_ONLY + CODE)
    assert "[2] '' cached" == run(XDG_CACHE_HOME=str(kept))


def test_changed_code_is_compiled_again_with_all_that_calls_it(tmp_path, monkeypatch):
    modules = ("boxes.costs", "boxes.mondrian", "auto.improve", "random")
    before = {module: compilation._fingerprint(module) for module in modules}  # noqa: SLF001
    shutil.copytree(Path(compilation.__file__).parent, tmp_path / "kernels")
    monkeypatch.setattr(compilation, "_HERE", tmp_path / "kernels")
    assert before == {module: compilation._fingerprint(module) for module in modules}  # noqa: SLF001
    with (tmp_path / "kernels" / "boxes" / "costs.py").open("a") as file:
        file.write("# changed\n")
    after = {module: compilation._fingerprint(module) for module in modules}  # noqa: SLF001
    assert {"random"} == {module for module in modules if before[module] == after[module]}


@pytest.mark.exhaustive
def test_a_full_disk_does_not_stop_a_computation(tmp_path):
    assert "[2] '' compiled" == run("0", XDG_CACHE_HOME=str(tmp_path))
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.exhaustive
def test_a_disk_that_fills_between_index_and_code_leaves_no_index(tmp_path):
    assert "[2] '' compiled" == run("5000", XDG_CACHE_HOME=str(tmp_path))
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]
    assert "[2] '' compiled" == run(XDG_CACHE_HOME=str(tmp_path))
    assert "[2] '' cached" == run(XDG_CACHE_HOME=str(tmp_path))


@pytest.mark.exhaustive
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_of_the_cache_is_compiled_again(kept, ending):
    damaged = list(kept.rglob(f"*.{ending}"))
    for path in damaged:
        path.write_bytes(b"")
    assert damaged
    assert "[2] '' compiled" == run(XDG_CACHE_HOME=str(kept))
    assert "[2] '' cached" == run(XDG_CACHE_HOME=str(kept))


def test_the_end_of_what_another_thread_compiled_from_before_is_not_timed():
    """Numba notifies the listeners of all threads."""
    with compilation.on_compile(lambda: None) as other:
        compilation.event.start_event("numba:compile")
        with compilation.on_compile(lambda: None) as compiled:
            compilation.event.end_event("numba:compile")
    assert other.seconds > compiled.seconds


@pytest.mark.exhaustive
def test_the_folder_that_the_user_names_is_taken(tmp_path):
    assert f"[2] '{tmp_path}' compiled" == run(NUMBA_CACHE_DIR=str(tmp_path))
    assert list(tmp_path.rglob("*.nbi"))
    assert f"[2] '{tmp_path}' cached" == run(NUMBA_CACHE_DIR=str(tmp_path))


@pytest.mark.exhaustive
def test_a_settings_file_in_the_current_folder_decides_nothing(tmp_path):
    here, planted, stubs = tmp_path / "here", tmp_path / "planted", tmp_path / "stubs"
    for folder in (here, planted, stubs):
        folder.mkdir()
    (stubs / "yaml.py").write_text(YAML)
    trace = planted / "trace.json"
    settings = {"cache_dir": str(planted), "chrome_trace": str(trace)}
    (here / ".numba_config.yaml").write_text(json.dumps(settings))
    environment = {"PYTHONPATH": str(stubs), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert "[2] '' compiled" == run(cwd=here, **environment)
    assert [] == list(planted.rglob("*"))


@pytest.mark.exhaustive
def test_a_settings_file_is_not_read_where_yaml_is_missing_either(tmp_path):
    (tmp_path / ".numba_config.yaml").write_text("{}")
    assert "[2] '' compiled" == run(cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path))


def test_a_folder_of_somebody_else_is_not_trusted(tmp_path, monkeypatch):
    folder = compilation.cache_folder.__wrapped__
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert str(tmp_path) in folder("boxes.costs")
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    assert folder("boxes.costs") is None
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert folder("boxes.costs") is None


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_can_change_is_not_trusted(tmp_path, monkeypatch, variable, mode):
    folder = compilation.cache_folder.__wrapped__
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "open" / "cache"))
    (tmp_path / "open" / "cache").mkdir(parents=True)
    leaf = folder("boxes.costs")
    assert leaf is not None
    (tmp_path / "open").chmod(mode)  # which lets others rename what is in it
    assert folder("boxes.costs") is None
    (tmp_path / "open").chmod(mode | 0o1000)
    assert leaf == folder("boxes.costs")
    os.chmod(leaf, mode)  # noqa: PTH101 - a folder is spelled as numba takes it
    assert folder("boxes.costs") is None


def test_a_folder_that_is_made_is_private_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "new" / "cache"))
    before = os.umask(0)
    try:
        assert compilation.cache_folder.__wrapped__("boxes.costs") is not None
    finally:
        os.umask(before)


def test_a_link_is_followed_before_the_folder_is_judged(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "link"))
    (tmp_path / "open").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    assert str(tmp_path / "open") in compilation.cache_folder.__wrapped__("boxes.costs")
    (tmp_path / "open").chmod(0o777)
    assert compilation.cache_folder.__wrapped__("boxes.costs") is None
