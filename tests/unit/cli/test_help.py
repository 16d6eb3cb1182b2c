"""The options of every command stay what they are: names, values, defaults and help.

Their order and headings may change. A change that is meant: python tests/unit/cli/test_help.py
"""

from pathlib import Path

from typer.main import get_command

from dbanon.cli import app

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


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
