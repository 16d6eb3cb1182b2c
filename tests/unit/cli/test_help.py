"""The options of every command stay what they are: names, values, defaults and help.

Their order and headings may change. A change that is meant: python tests/unit/cli/test_help.py
"""

import subprocess
import sys
from pathlib import Path

from typer.main import get_command

from dbanon.cli import COMMANDS, app

FILE = Path(__file__).with_name("help.txt")


def commands(path, command):
    """Yield every command that does something, with the words that run it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    for name, child in (inner or {}).items():
        yield from commands(f"{path} {name}", child)


def described(path, command):
    """Return what help says of a command, its options in the order of their names."""
    context = command.make_context(path, [], resilient_parsing=True, max_content_width=200)
    records = []
    for parameter in command.get_params(context):
        names, said = parameter.get_help_record(context) or (parameter.name, "")
        default = parameter.default
        names += f" = {default!s}" if default not in {None, False, ""} else ""
        records.append(f"  {names}\n      {' '.join(said.split())}".rstrip())
    return "\n".join([f"## {path}", command.help or "", *sorted(records)])


def text():
    """Return the whole golden file."""
    found = commands("dbanon", get_command(app))
    return "\n\n".join(described(path, command) for path, command in found) + "\n"


def test_every_command_has_the_options_that_it_had():
    expected = FILE.read_text(encoding="utf-8").split("\n## ")
    assert expected == text().split("\n## "), "if it is meant: python tests/unit/cli/test_help.py"


def test_the_list_of_commands_has_the_first_line_of_each_help():
    for name, command in get_command(app).commands.items():
        assert COMMANDS[name][1] == (command.help or "").splitlines()[0]


def test_the_help_of_publish_fits_one_screen(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    app(["publish", "--help"], standalone_mode=False)
    assert 40 < len(capsys.readouterr().out.splitlines()) <= 60


def test_help_imports_no_command():
    code = "from dbanon.cli import main; import sys; sys.argv = ['dbanon', '--help']; main()"
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True
    )
    assert "Publish an anonymized relation" in shown.stdout
    imported = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert "dbanon.cli" in imported
    assert {"dbanon.cli.options", "dbanon.request", "numpy", "psycopg"}.isdisjoint(imported)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
