"""A hint names a command that exists, with options that it takes."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

import dbanon
from dbanon.cli import app

COMMANDS = get_command(app).commands
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


@pytest.fixture(scope="module")
def hints():
    return sorted({*found_hints()})


def found_hints():
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


def is_taken(first, second, rest):
    """Whether the program has that command, and the command all options after it."""
    command = COMMANDS.get(first)
    if hasattr(command, "commands"):
        command = command.commands.get(second)
    taken = {flag for parameter in getattr(command, "params", ()) for flag in parameter.opts}
    return command is not None and set(re.findall(r"--[a-z-]+", rest)) <= taken


def test_the_command_of_a_hint_exists_and_takes_its_options(hints):
    said = [(words, hint) for hint in hints for words in SPOKEN.findall(hint[1])]
    assert len(said) > 100
    assert [hint for words, hint in said if not is_taken(*words)] == []


@pytest.mark.parametrize(
    "words", [("pubish", "t", ""), ("policy", "shw", ""), ("publish", "t", " --kk")]
)
def test_a_hint_that_no_command_answers_is_found(words):
    assert not is_taken(*words)


def test_no_hint_holds_what_a_shell_takes_for_something_else(hints):
    assert [hint for hint in hints if re.search(r"<\w+>", hint[1])] == []
