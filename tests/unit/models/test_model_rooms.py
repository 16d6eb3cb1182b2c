"""What a privacy model says of itself, in Python and in SQL, fits together."""

import re

import pytest

from dbanon import resources
from dbanon.models.base import ClassModel, Scope
from dbanon.models.registry import MODELS

INPUTS = {
    Scope.CLASSES: {"classes"},
    Scope.SENSITIVE: {"cells", "classes"},
    Scope.LINKS: {"classes"},
    Scope.POPULATION: {"presence"},
}


def place(name):
    return MODELS[name].__module__.removeprefix("dbanon.models.").replace(".", "/")


def fragment(name):
    return resources.sql("models", place(name))


def test_every_model_has_a_fragment_and_a_module_of_its_name_and_no_other_has():
    assert sorted(map(place, MODELS)) == sorted(resources.sql_names("models"))
    stems = [place(name).rpartition("/")[2] for name in MODELS]
    assert [name.replace("-", "_") for name in MODELS] == stems


@pytest.mark.parametrize("name", MODELS)
def test_a_fragment_knows_the_parameters_of_its_model_alone(name):
    known = set(MODELS[name].parameters())
    slots = set(re.findall(r"\{(\w*)\}", fragment(name)))
    within = [other for other in MODELS if other.replace("-", "_") in slots]
    assert all(known >= set(MODELS[other].parameters()) for other in within)
    slots -= {other.replace("-", "_") for other in within}
    assert slots <= known | ({"tree"} if "distance" in known else set())


@pytest.mark.parametrize("name", MODELS)
def test_a_fragment_reads_one_input_and_ends_with_what_each_class_achieves(name):
    text = fragment(name)
    read = set(re.findall(r"(?:FROM|JOIN) (cells|classes|presence)\b", text))
    assert len(read) <= 1  # classes are not numbered as those of cells are
    assert read <= INPUTS[MODELS[name].scope]
    last = text.rpartition("each_class AS (")[2]
    assert re.search(r"\bclass\b.*\bmembers\b.*\bachieved\b", last, re.DOTALL)
    assert text.endswith("\n)\n")


@pytest.mark.parametrize("name", [name for name in MODELS if not MODELS[name].of_whole])
def test_a_model_of_a_live_view_reads_nothing_but_cells_and_classes(name):
    assert "dbanon." not in fragment(name)
    assert issubclass(MODELS[name], ClassModel)
    assert not MODELS[name].is_around
