"""Write the parts of README that the registries can tell: python tests/readme.py."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from dbanon.anonymize.parameters import parameters
from dbanon.anonymize.registry import ALGORITHMS
from dbanon.models.registry import MODELS

README = Path(__file__).parents[1] / "README.md"
TABLE = "<!-- {}: tests/readme.py -->\n{}<!-- end -->\n"
ALGORITHM_HEAD = "| algorithm | what it does | at most | parameters |\n|---|---|---|---|\n"
MODEL_HEAD = "| model | parameters | options | what it asks |\n|---|---|---|---|\n"


def sentence(factory):
    """Return the first line of the docstring, which says what it does."""
    return inspect.getdoc(factory).splitlines()[0].rstrip(".").replace("``", "`")


def algorithm_row(name, factory):
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


def model_row(name, model):
    flags = [p.flag for p in model.parameters().values() if p.flag is not None]
    if flags and model.variant is not None and model.variant.help == "":
        flags.append(f"{model.variant.flag} {model.variant.value}")
    cells = (
        f"`{name}`",
        ", ".join(f"`{parameter}`" for parameter in model.parameters()),
        ", ".join(f"`{flag}`" for flag in flags) or "-",
        sentence(model),
    )
    return f"| {' | '.join(cells)} |\n"


def rewritten(text):
    """Return the page with the tables as the registries have them."""
    tables = {
        "algorithms": ALGORITHM_HEAD + "".join(map(algorithm_row, ALGORITHMS, ALGORITHMS.values())),
        "models": MODEL_HEAD + "".join(map(model_row, MODELS, MODELS.values())),
    }
    for name, table in tables.items():
        begin, end = TABLE.format(name, "").splitlines(keepends=True)
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        written = TABLE.format(name, table)
        text, places = pattern.subn(lambda _, written=written: written, text)
        if places != 1:
            sys.exit(f"README has {places} places for the table of {name}")
    return text


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
