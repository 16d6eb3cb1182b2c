"""Rules of the house that no linter knows."""

import ast
import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import dbanon
from dbanon import resources

PACKAGE = Path(dbanon.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_bundled" not in path.parts)
LONGEST_FUNCTION = 40
LONGEST_MODULE = 800


def lines_of_code(function: ast.FunctionDef) -> int:
    docstring = ast.get_docstring(function, clean=False)
    written = len(docstring.split("\n")) if docstring else 0
    return function.end_lineno - function.lineno + 1 - written


@pytest.fixture(scope="module")
def functions():
    """Return every function of the package, with the file that it is in."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    return [
        (path, node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def test_modules_are_short():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: count for path, count in lines.items() if count > LONGEST_MODULE} == {}


def test_functions_are_short(functions):
    assert len(functions) > 1000
    lines = [(lines_of_code(function), function.name, path) for path, function in functions]
    assert [found for found in lines if found[0] > LONGEST_FUNCTION] == []


def test_every_public_name_can_be_imported():
    found = {name: getattr(dbanon, name) for name in dbanon.__all__}
    undocumented = [name for name, value in found.items() if not value.__doc__]
    assert undocumented == []
    assert sorted(dbanon.__all__) == dbanon.__all__


SERVING = {"starlette", "uvicorn", "anyio", "jinja2"}
HEAVY = {"numpy", "numba", "pyarrow", "pandas", "scipy", "alembic", "sqlalchemy", "matplotlib"}
HEAVY |= SERVING
NO_SERVER = ("--dsn", "host=/nowhere")
STARTS = {
    "help": (("--help",), HEAVY | {"psycopg", "pydantic", "rich"}),
    "version": (("--version",), HEAVY | {"psycopg", "rich"}),
    "check": (("check", "anon.people", *NO_SERVER), HEAVY),
    "publish": (("publish", "people", "--k", "5", *NO_SERVER), HEAVY),
    "refresh": (("refresh", "people", *NO_SERVER), HEAVY),
}


@pytest.mark.parametrize("start", STARTS)
def test_a_command_starts_without_the_heavy_libraries(start):
    words, avoided = STARTS[start]
    code = f"import sys; sys.argv = ['dbanon', *{words}]\nfrom dbanon.cli import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\n"
    code += "print('LOADED', *sorted(m for m in sys.modules if '.' not in m))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.rpartition("LOADED")[2].split())
    assert loaded & avoided == set(), "import it inside the function that needs it"
    assert ("psycopg" in loaded) == ("--dsn" in words)


def test_only_the_studio_imports_what_serves_pages():
    """Each module but its own, as a command imports them where it needs them."""
    code = "import importlib, pkgutil, sys, dbanon\n"
    code += "for one in pkgutil.walk_packages(dbanon.__path__, 'dbanon.'):\n"
    code += "    if not one.name.startswith(('dbanon.studio', 'dbanon.__main__')):\n"
    code += "        importlib.import_module(one.name)\n"
    code += "print(*sorted(m for m in sys.modules if m.startswith('dbanon.')))\n"
    code += f"print(*sorted({SERVING} & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, serving = run.stdout.splitlines()
    assert {"dbanon.cli.studio", "dbanon.pages.report", "dbanon.actions.publish"} < {
        *modules.split()
    }
    assert "" == serving


def test_steps_return_numbers(functions):
    """Numba compiles one that returns its argument, an array, which then is freed too early."""
    numbers = {"int", "float", "bool", "None", "np.uint64"}
    steps = {}
    for path, function in functions:
        decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
        if decorators & {"step", "inlined"}:
            steps[path, function.name] = ast.unparse(function.returns or ast.Name("?"))
    assert len(steps) > 50
    parts = {key: re.sub(r"^tuple\[(.*)\]$", r"\1", text) for key, text in steps.items()}
    assert {key: text for key, text in parts.items() if not set(text.split(", ")) <= numbers} == {}


@pytest.mark.parametrize("kind", ["functions", "models"])
def test_every_sql_file_opens_with_a_sentence(kind):
    names = resources.sql_names(kind)
    assert names
    for name in names:
        assert resources.sql(kind, name).startswith("-- "), name


def test_every_statement_has_a_name_of_its_own_opens_with_a_sentence_and_is_used():
    source = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    families = sorted((Path(__file__).parents[2] / "sql").glob("*.sql"))
    assert len(families) > 15
    for path in families:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("-- ")
        names = re.findall(r"^-- name: (.*)$", text, re.MULTILINE)
        assert names == sorted(set(names)), path.name
        for name in names:
            assert resources.statement(f"{path.stem}.{name}").startswith("-- "), name
            if not name.startswith("create_demo_"):
                assert f'"{path.stem}.{name}"' in source, name


def test_the_package_does_not_outgrow_its_figures(monkeypatch):
    """Figures that need no server: else a change learns of them at the end of a whole run."""
    benchmarks = Path(__file__).parents[1] / "benchmarks"
    monkeypatch.syspath_prepend(str(benchmarks))
    found = importlib.import_module("corridor").structure()
    allowed = json.loads((benchmarks / "corridor.json").read_text(encoding="utf-8"))
    assert {what: figure for what, figure in found.items() if figure > allowed[what]} == {}


def test_what_is_broken_on_purpose_and_the_tests_that_notice_exist():
    root = Path(__file__).parents[2]
    text = (root / "tests/mutation.py").read_text(encoding="utf-8")
    named = set(re.findall(r'"((?:dbanon|sql|tests)/[^"]+)"', text))
    assert len(named) > 50
    for path, _, statement in sorted(name.partition("#") for name in named):
        assert (root / path).exists(), path
        if statement:
            assert f"-- name: {statement}\n" in (root / path).read_text(encoding="utf-8")


def test_the_only_binary_files_that_are_tracked_are_data_and_pictures():
    tree = Path(__file__).parents[2]
    if not (tree / ".git").exists():
        pytest.skip("these tests were copied away from the repository")
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    listed = subprocess.run(
        [git, "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
    )
    tracked = [Path(name) for name in listed.stdout.split("\0") if (tree / name).is_file()]
    assert Path("pyproject.toml") in tracked
    binary = {path for path in tracked if b"\0" in (tree / path).read_bytes()}
    data = {
        path for path in binary if path.match("dbanon/data/*.gz") or path.match("tests/data/*.gz")
    }
    pictures = {path for path in binary if path.is_relative_to("docs") and path.suffix == ".png"}
    assert binary == data | pictures
    assert data


def requirements(table):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    texts = project["dependencies"] if table is None else project["optional-dependencies"][table]
    return {requirement.name: requirement for requirement in map(Requirement, texts)}


def test_the_container_library_is_one_that_has_the_module_of_the_tests():
    specifier = requirements("dev")["testcontainers"].specifier
    assert specifier.contains("4.15.0")
    assert not specifier.contains("4.14.2")  # whose module has another name
