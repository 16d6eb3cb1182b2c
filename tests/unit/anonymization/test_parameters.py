from dataclasses import dataclass, field
from typing import Literal

import pytest
from builders import policy_of

from dbanon.anonymization.interfaces import listens, parameters, typed
from dbanon.anonymization.registry import ALGORITHMS, algorithm_named, make_algorithm
from dbanon.domain.errors import PolicyError
from dbanon.domain.outcomes import Stages


@dataclass(frozen=True, slots=True)
class Sample:
    """Has a parameter of each kind."""

    rounds: int = 8
    width: float = 0.5
    limit: float | None = None
    name: str = "x"
    exact: bool = False
    order: Literal["rows", "codes"] = "rows"
    seeds: int | str = 3
    stages: Stages = field(default_factory=Stages)


def test_parameters_are_the_fields_but_for_the_listener():
    assert ["rounds", "width", "limit", "name", "exact", "order", "seeds"] == [*parameters(Sample)]
    assert listens(Sample)
    assert not listens(ALGORITHMS["mondrian"])


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("rounds", "12", 12),
        ("rounds", -3, -3),
        ("width", "0.25", 0.25),
        ("width", 2, 2.0),
        ("limit", "30", 30.0),
        ("name", "12", "12"),
        ("exact", "True", True),
        ("exact", "false", False),
        ("exact", False, False),
        ("order", "codes", "codes"),
        ("seeds", "7", 7),
        ("seeds", "all", "all"),
    ],
)
def test_a_value_is_read_as_its_field_asks(name, given, expected):
    found = typed("sample", Sample, {name: given})
    assert {name: expected} == found
    assert type(expected) is type(found[name])


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("rounds", "many", "an integer"),
        ("rounds", 1.5, "an integer"),
        ("rounds", True, "an integer"),
        ("width", "wide", "a number"),
        ("width", "nan", "a number"),
        ("width", float("inf"), "a number"),
        ("limit", "30s", "a number"),
        ("limit", True, "a number"),
        ("name", 5, "text"),
        ("exact", "perhaps", "true or false"),
        ("exact", 1, "true or false"),
        ("order", "columns", "one of rows, codes"),
        ("seeds", 1.5, "an integer or text"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_is_asked(name, given, wanted):
    with pytest.raises(PolicyError, match=f"{name} of sample is {wanted}") as caught:
        typed("sample", Sample, {name: given})
    assert f"leave {name} out" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("effort", "mondrian takes no effort", "--algorithm auto"),
        ("time_limit", "mondrian takes no time limit", "--algorithm auto"),
        ("stages", "no parameter of mondrian 'stages'", "it has none"),
    ],
)
def test_a_parameter_that_an_algorithm_lacks_is_refused(name, message, hint):
    with pytest.raises(PolicyError, match=message) as caught:
        typed("mondrian", ALGORITHMS["mondrian"], {name: "best"})
    assert hint == caught.value.hint


def test_a_wrong_name_of_a_parameter_is_answered_with_those_that_exist():
    with pytest.raises(PolicyError, match="no parameter of sample 'round'") as caught:
        typed("sample", Sample, {"round": 1})
    assert "choose one of rounds, width" in caught.value.hint


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_default_is_a_value_of_its_parameter(name):
    factory = ALGORITHMS[name]
    defaults = {key: value for key, value in parameters(factory).items() if value is not None}
    assert defaults == typed(name, factory, defaults)
    assert defaults == typed(name, factory, {key: str(value) for key, value in defaults.items()})


def test_stages_reach_the_algorithms_that_report():
    stages = Stages()
    policy = policy_of(["x"], algorithm="auto", params={"effort": "best", "time_limit": 2})
    algorithm = make_algorithm(policy, stages=stages)
    assert algorithm.stages is stages
    assert ("best", 2.0) == (algorithm.effort, algorithm.time_limit)


def test_an_algorithm_that_divides_the_table_itself_takes_no_blocks():
    with pytest.raises(PolicyError, match="auto divides tables of any size"):
        make_algorithm(policy_of(["x"], algorithm="auto", block=10), stages=Stages())


def test_a_wrong_name_of_an_algorithm_is_answered_with_the_nearest():
    with pytest.raises(PolicyError, match="did you mean mondrian") as caught:
        algorithm_named("mondrain")
    assert f"choose one of {', '.join(ALGORITHMS)}" == caught.value.hint
