"""Write the part of README that the registry can tell: python tests/readme.py."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from dbanon.anonymize.parameters import parameters
from dbanon.anonymize.registry import ALGORITHMS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- algorithms: tests/readme.py -->\n", "<!-- end -->\n"
HEAD = "| algorithm | what it does | at most | parameters |\n|---|---|---|---|\n"


def sentence(factory):
    """Return the first line of the docstring, which says what the algorithm does."""
    return inspect.getdoc(factory).splitlines()[0].rstrip(".").replace("``", "`")


def row(name, factory):
    limit = getattr(factory, "MAX_ROWS", None)
    needs = "library(" in inspect.getsource(inspect.getmodule(factory))
    given = ", ".join(f"`{key} = {spell(value)}`" for key, value in parameters(factory).items())
    cells = (
        f"`{name}`{' ¹' if needs else ''}",
        sentence(factory),
        f"{limit:,}" if limit else "any",
        given or "-",
    )
    return f"| {' | '.join(cells)} |\n"


def spell(value):
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else value


def table():
    return HEAD + "".join(row(name, factory) for name, factory in ALGORITHMS.items())


def rewritten(text):
    """Return the page with the table as the registry has it."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    written, places = pattern.subn(lambda _: BEGIN + table() + END, text)
    if places != 1:
        sys.exit(f"README has {places} places for the table of algorithms")
    return written


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
