"""A hint names a command that exists, with options that it takes."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

import dbanon
from dbanon.cli import app

HINTING = ("hint", "remedy", "repair")
SPOKEN = re.compile(r"\bdbanon (?!who\b|and\b)([a-z]+)(?: ([a-z]+))?([^;,:]*)")


def texts(node):
    """Yield the texts of an expression, names and values standing as N."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "N" for p in inner.values]
            yield "".join(map(str, parts))
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def hints():
    for path in sorted(Path(dbanon.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword):
                hinting = node.arg in HINTING
            elif isinstance(node, ast.Assign):
                hinting = any(getattr(target, "id", "") in HINTING for target in node.targets)
            else:
                hinting = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "command"
            if hinting:
                yield from ((path.name, text) for text in texts(node))


HINTS = sorted({*hints()})
COMMANDS = sorted({hint for hint in HINTS if SPOKEN.search(hint[1])})


@pytest.mark.parametrize(("file", "text"), COMMANDS)
def test_the_command_of_a_hint_exists_and_takes_its_options(file, text):
    for first, second, rest in SPOKEN.findall(text):
        command = get_command(app).commands.get(first)
        assert command is not None, file
        inner = getattr(command, "commands", None)
        if inner is not None:
            assert second in inner, file
            command = inner[second]
        taken = {flag for parameter in command.params for flag in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= taken, file


@pytest.mark.parametrize(("file", "text"), HINTS)
def test_no_hint_holds_what_a_shell_takes_for_something_else(file, text):
    assert not re.search(r"<\w+>", text), file
