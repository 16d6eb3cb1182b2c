"""What is required, what an extra brings, and what is said where it is missing."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pages import ROOT, page

import dbanon
from dbanon.anonymization.registry import ALGORITHMS, make_algorithm
from dbanon.domain import errors
from dbanon.domain.errors import ConfigError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

PACKAGE = Path(dbanon.__file__).parent
TEXTBOOK = ["matching", "k-means", "dbscan", "optics", "denclue", "birch"]
WITH_OTHERS = {"adbc-driver-manager", "joblib", "markupsafe", "threadpoolctl"}  # of these libraries


def names(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


@pytest.fixture(scope="module")
def project():
    file = ROOT / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]


def brought(project, extra):
    """Return the distributions that an extra installs, those of other extras included."""
    found = set()
    for text in project["optional-dependencies"][extra]:
        requirement = Requirement(text)
        found |= {canonicalize_name(requirement.name)} - {"dbanon"}
        for other in requirement.extras:
            found |= brought(project, other)
    return found


def test_what_is_imported_is_required_or_of_an_extra(project):
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    imported -= {*sys.stdlib_module_names, "dbanon"}
    of_module = packages_distributions()
    distributions = {canonicalize_name(of_module[module][0]) for module in imported}
    required = names(project["dependencies"])
    optional = {canonicalize_name(of_module[module][0]) for module in errors.LIBRARIES}
    assert distributions - WITH_OTHERS == required | optional
    assert not required & optional


def test_an_extra_brings_what_its_error_says(project):
    of_module = packages_distributions()
    for module, (_, extra) in errors.LIBRARIES.items():
        assert canonicalize_name(of_module[module][0]) in brought(project, extra)
    assert "scikit-learn" in brought(project, "report")
    assert brought(project, "report") < brought(project, "studio")


def test_all_brings_what_every_extra_does_and_developers_have_it(project):
    others = set(project["optional-dependencies"]) - {"all", "dev"}
    assert set().union(*(brought(project, one) for one in others)) == brought(project, "all")
    assert brought(project, "all") <= brought(project, "dev")


def test_the_reason_of_each_dependency_is_written(project):
    written = page("docs/development/architecture.md")
    assert {f"`{name}`" for name in names(project["dependencies"])} == {
        name for name, _ in written.rows("## Dependencies")
    }
    extra = {f"\n| `{name}` | " for name in set(project["optional-dependencies"]) - {"dev"}}
    assert [name for name in extra if name not in written.written] == []


@pytest.mark.parametrize("library", errors.LIBRARIES)
def test_a_missing_library_is_an_error_with_the_command_that_installs_it(monkeypatch, library):
    errors.require_library(library, what="it")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=r"it needs .*, which is not installed") as missing:
        errors.require_library(library, what="it")
    assert f"pip install 'dbanon[{errors.LIBRARIES[library][1]}]'" == missing.value.hint


def make(algorithm):
    columns = (ColumnRule("age", Role.QUASI),)
    models = (ModelSpec("k-anonymity", {"k": 2}),)
    policy = Policy(TableName("public", "people"), columns, models, algorithm=algorithm)
    return make_algorithm(policy, stages=Stages())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_algorithm_of_the_extra_is_refused_without_it_and_no_other_is(monkeypatch, algorithm):
    for library in errors.LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    if algorithm in TEXTBOOK:
        with pytest.raises(ConfigError, match=f"the algorithm {algorithm} needs") as missing:
            make(algorithm)
        assert "pip install 'dbanon[textbook]'" == missing.value.hint
    else:
        assert make(algorithm) is not None


def test_a_frame_is_refused_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    frame = pd.DataFrame({"age": np.arange(20)})
    with pytest.raises(ConfigError, match="the algorithm k-means needs scikit-learn"):
        dbanon.anonymize(frame, k=2, quasi=["age"], algorithm="k-means")
