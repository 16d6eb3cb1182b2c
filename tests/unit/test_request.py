"""A request has every option once, and whatever takes options follows from it."""

import inspect
import subprocess
import sys
from dataclasses import fields, replace

import pytest

import dbanon
from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.release import ReleaseKind
from dbanon.domain.table import TableName
from dbanon.request import OPTIONS, Panel, Request, Stored
from dbanon.settings import Settings

PEOPLE = Policy(TableName("public", "people"), (ColumnRule("age", Role.QUASI),))
TAKING = ("publish", "publish_dataset", "plan", "plan_with_report", "plan_dataset", "compare")


@pytest.mark.parametrize("name", TAKING)
def test_the_options_of_a_function_can_be_seen_in_its_signature(name):
    first, *rest = inspect.signature(getattr(dbanon, name)).parameters.values()
    assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {one for one, option in OPTIONS.items() if name in option.scope} == {
        parameter.name for parameter in rest
    }
    assert {inspect.Parameter.KEYWORD_ONLY} == {parameter.kind for parameter in rest}
    assert ("k", "int | None") in {(one.name, one.annotation) for one in rest}


def test_a_function_refuses_the_options_of_another():
    for name, option in (("plan", "dry_run"), ("publish", "draft"), ("publish_dataset", "series")):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
            getattr(dbanon, name)("t", **{option: None})


def test_the_keys_that_a_request_replaces_are_keys_of_a_policy():
    keys = {one.name for one in fields(Policy)}
    assert {name for name, option in OPTIONS.items() if option.is_key} <= keys


def test_every_option_of_the_command_line_has_a_panel_and_help():
    shown = [option for option in OPTIONS.values() if option.panel]
    assert {Panel.PRIVACY, Panel.SEARCH, Panel.OUTPUT} == {option.panel for option in shown}
    assert all(option.help and option.flag.startswith("--") for option in OPTIONS.values())


def test_what_the_ledger_keeps_asks_for_the_same():
    asked = Request(
        k=5,
        models=[{"name": "t-closeness", "params": {"t": 0.5}}],
        effort="fast",
        params={"loss": "il"},
        kind="view",
        grants=["analysts"],
        keep_assignment=True,
        dataset=("public.a", "public.b"),
    )
    assert asked.specs == (ModelSpec("t-closeness", {"t": 0.5}),)
    assert (asked.effort, asked.params) == (None, {"loss": "il", "effort": "fast"})
    assert asked.relation_kind is ReleaseKind.VIEW
    assert asked == Request.from_ledger(asked.to_ledger())
    assert asked == replace(asked)


def test_the_ledger_keeps_no_connection_and_nothing_of_one_run():
    asked = Request(settings=Settings(dsn="postgresql://u:secret@h/d"), dry_run=True, strict=True)
    always = {name for name, option in OPTIONS.items() if option.stored is Stored.ALWAYS}
    assert always == asked.to_ledger().keys()
    assert "secret" not in repr(asked)


@pytest.mark.parametrize("name", ["settings", "dry_run", "executor", "no_such"])
def test_options_that_the_ledger_never_keeps_are_not_taken_from_it(name):
    with pytest.raises(ConfigError, match="never keeps"):
        Request.from_ledger({**Request().to_ledger(), name: "x"})


@pytest.mark.parametrize(
    "forged",
    [
        *({"kind": kind} for kind in ("no such", None, 5)),
        *({"grants": grants} for grants in (5, None, "public", [5])),
        *({"dataset": names} for names in (3, "public.a", [1])),
        *({"models": models} for models in (5, ["a"])),
        *({"params": params} for params in ([1], "a")),
        *({name: ["a"]} for name in ("subject", "population", "max_suppressed", "k")),
        *({name: 5} for name in ("algorithm", "schema", "name", "policy", "keep_assignment")),
        *({name: "no"} for name in ("keep_assignment", "allow_foreign", "seed", "k", "block")),
        *({name: True} for name in ("k", "seed", "max_suppressed")),
        *({name: None} for name in ("policy", "schema", "seed")),
        *({"seed": seed} for seed in (-1, 2**63, 0.5)),
    ],
    ids=str,
)
def test_no_value_is_taken_from_the_ledger_that_no_option_has(forged):
    with pytest.raises(ConfigError, match="never keeps"):
        Request.from_ledger({**Request().to_ledger(), **forged})


def test_a_python_without_docstrings_has_options_without_help():
    code = "from dbanon.cli import app; from dbanon.request import OPTIONS; print(OPTIONS['seed'])"
    run = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, check=True)
    assert b"flag='--seed', help=''" in run.stdout


@pytest.mark.parametrize("models", [[{"name": "no-such"}], [ModelSpec("t-closeness", {"t": 2.0})]])
def test_a_model_that_is_none_is_refused_before_anything_is_read(models):
    with pytest.raises(PolicyError):
        Request(models=models)


@pytest.mark.parametrize(
    "given",
    [
        {"k": 5, "models": [ModelSpec("k-anonymity", {"k": 2})]},
        {"l": 3, "models": [ModelSpec("l-diversity", {"l": 2})]},
        {"models": [ModelSpec("t-closeness", {"t": t}) for t in (0.2, 0.9)]},
    ],
)
def test_a_model_that_is_asked_for_twice_is_refused(given):
    """One would replace the other, and readers would be promised less than was asked for."""
    with pytest.raises(PolicyError, match="is asked for 2 times"):
        Request(**given).over(Policy(dbanon.TableName("public", "people"), ()))


@pytest.mark.parametrize("policy", [PEOPLE, replace(PEOPLE, block=10)])
def test_blocks_of_an_algorithm_that_divides_by_itself_are_refused_on_every_road(policy):
    asked = Request() if policy.block else Request(block=10)
    with pytest.raises(PolicyError, match="divides tables of any size") as refused:
        asked.over(policy)
    assert "leave out --block" == refused.value.hint
