"""What others may rely on changes only on purpose: Python names, SQL functions, keys of ``--json``.

A change that is meant: PYTHONPATH=docs:tests python tests/unit/test_compatibility.py
"""

import inspect
import json
import re
from enum import Enum
from pathlib import Path
from typing import Annotated, get_args, get_origin

import generated
import json_schemas
import pytest
from documents import flaw
from jsonschema import Draft202012Validator
from typer.main import get_command
from unit.cli.test_help import commands

import dbanon
from dbanon.actions.server import Compiled, ServerStatus
from dbanon.cli import app
from dbanon.cli.terminal import console

FOLDER = Path(__file__).parent
SQL = re.compile(
    r"CREATE OR REPLACE FUNCTION dbanon\.enqueue\((.*?)\)\s*\nRETURNS (\w+)", re.DOTALL
)


def typed(annotation):
    """Return a type as a word, without the rules of policy files that it carries."""
    if get_origin(annotation) is Annotated:
        return typed(get_args(annotation)[0])
    if annotation is inspect.Parameter.empty or isinstance(annotation, str):
        return "" if not isinstance(annotation, str) else annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def signature(name, value):
    """Yield a line for the name and one for each parameter, then what it returns."""
    found = inspect.signature(value)
    kind = f"class of {value.__mro__[1].__name__}" if inspect.isclass(value) else "function"
    yield f"{name}: {kind}"
    for parameter in found.parameters.values():
        if parameter.default is inspect.Parameter.empty:
            default = ""
        else:
            default = re.sub(r" at 0x\w+", "", f" = {parameter.default!r}")
        kind = " (keyword)" if parameter.kind is inspect.Parameter.KEYWORD_ONLY else ""
        yield f"  {parameter.name}: {typed(parameter.annotation)}{default}{kind}"
    if not inspect.isclass(value):
        yield f"  -> {typed(found.return_annotation)}"


def python_names():
    """Return the public names of the package with their signatures."""
    lines = []
    for name in dbanon.__all__:
        value = getattr(dbanon, name)
        if inspect.isclass(value) and issubclass(value, Enum):
            lines.append(f"{name}: enumeration of {', '.join(one.value for one in value)}")
        else:
            lines += signature(name, value)
            if inspect.isclass(value):
                own = vars(value).keys() - inspect.signature(value).parameters
                lines += [f"  .{key}" for key in sorted(own) if not key.startswith("_")]
    return "\n".join(lines) + "\n"


def sql_functions():
    """Return the functions of the schema dbanon that others may call, with their arguments."""
    page = generated.sql_functions() + generated.sql_estimates()
    calls = [
        call
        for block in re.findall(r"```sql\n(.*?)\n```", page, re.DOTALL)
        for call in block.splitlines()
    ]
    arguments, returned = SQL.search(dbanon.init_sql()).groups()
    return (
        "\n".join([*calls, f"dbanon.enqueue({' '.join(arguments.split())}) -> {returned}"]) + "\n"
    )


SNAPSHOTS = {"public_names.txt": python_names, "public_functions.txt": sql_functions}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_what_others_call_has_not_changed(name):
    expected = (FOLDER / name).read_text("utf-8")
    assert expected == SNAPSHOTS[name](), (
        "if meant: PYTHONPATH=docs:tests python tests/unit/test_compatibility.py"
    )


def test_the_schemas_of_documents_are_those_of_the_code():
    tracked = {path.name: path.read_text("utf-8") for path in json_schemas.FOLDER.iterdir()}
    assert tracked == json_schemas.files(), "run: python docs/json_schemas.py"


def test_every_command_that_prints_json_has_a_schema():
    found = {
        path.removeprefix("dbanon ")
        for path, command in commands("dbanon", get_command(app))
        if any(parameter.name == "json" for parameter in command.params)
    }
    assert set(json_schemas.COMMANDS) == found


@pytest.mark.parametrize("command", json_schemas.COMMANDS)
def test_a_schema_is_one_of_the_draft_that_it_names(command):
    schema = json_schemas.schema(command)
    assert Draft202012Validator.META_SCHEMA["$id"] == schema["$schema"]
    Draft202012Validator.check_schema(schema)
    assert set(re.findall(r"#/\$defs/(\w+)", json.dumps(schema))) == set(schema["$defs"])


STATUS = {"former": None, "revision": "1", "changed": True, "lost": [], "lacking": []}


def test_a_document_may_have_more_keys_than_its_schema_but_those_of_this_version_have_none():
    Draft202012Validator(json_schemas.schema("init")).validate(STATUS | {"added": 1})
    assert flaw("init", STATUS) is None
    assert "added" in flaw("init", STATUS | {"added": 1})


@pytest.mark.parametrize("change", [{"changed": "yes"}, {"lost": None}, {"revision": 1}])
def test_a_document_of_other_types_is_found(change):
    assert flaw("init", STATUS | change).endswith(f"$.{next(iter(change))}")


SERVER = ServerStatus(
    running=False,
    pid=None,
    version="18.4",
    data_directory=Path("data"),
    socket_directory=Path("run"),
)


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("server status", SERVER),
        ("server warm", Compiled(Path("cache"), 0.0)),
    ],
)
def test_the_documents_of_the_server_are_as_published(command, value):
    assert flaw(command, console.plain(value)) is None


def test_an_error_is_a_document_of_every_command():
    error = {"kind": "ConfigError", "message": "m", "hint": None, "done": None, "exit_code": 1}
    refused = {command: flaw(command, {"error": error}) for command in json_schemas.COMMANDS}
    assert set(refused.values()) == {None}, refused


if __name__ == "__main__":
    for name, make in SNAPSHOTS.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
