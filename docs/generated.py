"""The parts of the pages that are generated from the code, as Markdown.

A page marks the place with ``<!-- generated: algorithms -->``. ``conf.py`` inserts the part when
the site is built, and the tests when they read the pages. Generated parts are not tracked.
"""

from __future__ import annotations

import inspect
import re
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from typer.main import get_command

import dbanon
from dbanon.anonymization.interfaces import parameters
from dbanon.anonymization.registry import ALGORITHMS
from dbanon.cli import app
from dbanon.domain.messages import MEANINGS
from dbanon.domain.notices import NOTICES
from dbanon.domain.policy import ColumnRule, Condition, MaskingStep, Policy, meanings_of
from dbanon.domain.policy_warning import EXPLANATIONS
from dbanon.formats.support import FEATURES, Mode
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dbanon.models.base import Parameter

MARK = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)
FUNCTION = re.compile(
    r'CREATE OR REPLACE FUNCTION dbanon\."?(?P<name>\w+)"?\((?P<arguments>.*?)\)\s*\nRETURNS '
    r".*?COMMENT ON FUNCTION dbanon\.\"?(?P=name)\"?\(.*?\) IS\s+'(?P<comment>(?:[^']|'')*)'",
    re.DOTALL,
)
ESTIMATES = ("at_least", "at_most", "middle", "share", "shares_of_labels")
ASKED = {
    "k-anonymity": "--k 5",
    "l-diversity": "--l 3",
    "probabilistic-l-diversity": "--model probabilistic-l-diversity:l=3",
    "entropy-l-diversity": "--model entropy-l-diversity:l=3",
    "recursive-l-diversity": "--model recursive-l-diversity:c=3,l=3",
    "alpha-k-anonymity": "--model alpha-k-anonymity:alpha=0.5",
    "p-sensitivity": "--model p-sensitivity:p=3",
    "t-closeness": "--model t-closeness:t=0.2,distance=ordered",
    "beta-likeness": "--model beta-likeness:beta=1,kind=enhanced",
    "delta-disclosure": "--model delta-disclosure:delta=1.5",
    "m-uniqueness": "--model m-uniqueness:m=3",
    "x-y-anonymity": "--model x-y-anonymity:k=3,x=age,y=disease",
    "k-map": "--model k-map:k=20 --population public.people",
    "delta-presence": "--model delta-presence:dmin=0.01,dmax=0.2 --population public.people",
}
"""How the command line asks for a model; the others are asked for in a policy only."""


MODES = {
    Mode.VIEW: "A live view (`--as view`)",
    Mode.BUCKETS: "Anatomy (`anatomy = true`)",
    Mode.DATASET: "Several tables together (`--dataset`)",
    Mode.PERSONS: "The table of the persons of a dataset",
    Mode.LINKED: "The other tables of a dataset",
    Mode.BLOCKS: "Blocks of rows (`--executor`, `--rows-per-block`)",
    Mode.COMPARISON: "Comparing algorithms (`plan --compare`)",
    Mode.APART: "Rows of kept values apart (`keep = true`)",
    Mode.FRAME: "A data frame (`dbanon.anonymize`)",
    Mode.PLAN: "The plan of a publication (`plan`)",
    Mode.FORECAST: "The plan of a refresh (`plan --refresh`)",
    Mode.COUNTS: "Counts with noise (`count`)",
    Mode.REPORT: "A report (`report`)",
    Mode.REPORT_TOGETHER: "A report of a dataset (`report --dataset`)",
    Mode.ATTACK: "An attack (`attack`)",
    Mode.ATTACK_BOTH: "An attack of two relations (`attack --with`)",
    Mode.CHECK_ALL: "A check of all relations (`check --all`)",
    Mode.CHECK_BUCKETS: "A check of anatomy (`check`)",
    Mode.REUSE: "A release made of the classes of earlier ones",
    Mode.REFRESH: "A refresh that keeps classes",
    Mode.PLACES: "A refresh that reads changed rows only",
}


def expanded(text: str) -> str:
    """Return a page with its generated parts."""
    return MARK.sub(lambda mark: PARTS[mark[1]](), text)


def algorithms() -> str:
    """Return the table of the algorithms, with the parameters of each."""
    head = ("algorithm", "what it does", "at most", "parameters")
    return table(head, (_algorithm(*item) for item in ALGORITHMS.items()))


def models() -> str:
    """Return the table of the privacy models, with the parameters of each."""
    head = ("model", "what holds", "parameters", "option", "`--as view`")
    return table(head, (_model(name) for name in MODELS))


def metrics() -> str:
    """Return the table of the measures of a publication."""
    rows = ((f"`{name}`", meaning.title, meaning.line) for name, meaning in MEANINGS.items())
    return table(("in `--json`", "on the screen", "what it says"), rows)


def commands() -> str:
    """Return a section for each command, with the text that its ``--help`` prints."""
    return "\n".join(_commands("dbanon", get_command(app)))


def sql_functions() -> str:
    """Return a section for each function that proves something, as ``dbanon init`` creates them."""
    return _functions(lambda name: name.startswith(("check_", "verify")))


def sql_estimates() -> str:
    """Return a section for each function with which analysts estimate published values."""
    return _functions(ESTIMATES.__contains__)


def python_names() -> str:
    """Return the public names of ``dbanon``: functions, then classes."""
    named = [(name, getattr(dbanon, name)) for name in dbanon.__all__]
    functions = [_callable(name, value) for name, value in named if not inspect.isclass(value)]
    classes = ((f"`{name}`", sentence(value)) for name, value in named if inspect.isclass(value))
    parts = ("## Functions", *functions, "## Values and errors", table(("name", "what"), classes))
    return "\n\n".join(parts)


def keys(described: type) -> str:
    """Return the table of the keys of a part of a policy file."""
    meanings = meanings_of(described).items()
    rows = ((f"`{name}`", meaning, without) for name, (meaning, without) in meanings)
    return table(("key", "value", "without it"), rows)


def support() -> str:
    """Return a section for each mode, with the features that it refuses and the reasons."""
    parts = []
    for mode in Mode:
        refused = [(one.name, one.refused[mode].text) for one in FEATURES if mode in one.refused]
        rows = ((name, re.sub(r"\{\w+(!r)?\}", "…", text)) for name, text in refused)
        parts.append(f"## {MODES[mode]}\n\n{table(('feature', 'why not'), rows)}")
    return "\n\n".join(parts)


def notices() -> str:
    """Return the table of the warnings that no policy acknowledges."""
    rows = ((f"`{code}`", one.finding, one.risk, one.remedy) for code, one in NOTICES.items())
    return table(("warning", "finding", "risk", "remedy"), rows)


def warnings() -> str:
    """Return the table of the warnings about policies."""
    rows = (
        (f"`{code}`", "column" if code.of_column else "policy", one.finding, one.risk, one.remedy)
        for code, one in EXPLANATIONS.items()
    )
    return table(("warning", "of the", "finding", "risk", "remedy"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "policy-keys": partial(keys, Policy),
    "column-keys": partial(keys, ColumnRule),
    "condition-keys": partial(keys, Condition),
    "masking-keys": partial(keys, MaskingStep),
    "algorithms": algorithms,
    "models": models,
    "warnings": warnings,
    "notices": notices,
    "support": support,
    "metrics": metrics,
    "commands": commands,
    "sql-functions": sql_functions,
    "sql-estimates": sql_estimates,
    "python-names": python_names,
}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def sentence(value: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(value) or "").splitlines()[0].rstrip(".").replace("``", "`")


def _algorithm(name: str, factory: Callable[..., Any]) -> tuple[str, ...]:
    limit = getattr(factory, "MAX_ROWS", None)
    needs = hasattr(factory, "NEEDS")
    given = ", ".join(f"`{key} = {_shown(value)}`" for key, value in parameters(factory).items())
    return (
        f"`{name}`{' ¹' if needs else ''}",
        sentence(factory),
        f"{limit:,}" if limit else "any",
        given or "-",
    )


def _model(name: str) -> tuple[str, ...]:
    model = MODELS[name]
    given = (f"`{key}` {_bounds(parameter)}" for key, parameter in model.parameters().items())
    asked = ASKED.get(name)
    return (
        f"`{name}`",
        sentence(model),
        "; ".join(given),
        f"`{asked}`" if asked else "-",
        "no" if model.of_whole else "yes",
    )


def _bounds(parameter: Parameter) -> str:
    """Describe the values that a parameter of a model takes."""
    if parameter.kind is tuple:
        text = "list of texts"
    elif parameter.among:
        text = " or ".join(f"`{choice}`" for choice in parameter.among)
    else:
        low = f"{'above' if parameter.above else 'from'} {parameter.least:g}"
        high = f" to {parameter.most:g}" if parameter.most <= 1 else ""
        text = f"{'integer' if parameter.kind is int else 'number'} {low}{high}"
    return text if parameter.default is None else f"{text}, default {_shown(parameter.default)}"


def _shown(value: object) -> object:
    if value is None or value == ():
        return "none"
    if isinstance(value, float):
        return f"{value:g}" if value else "0"
    return str(value).lower() if isinstance(value, bool) else value


def _commands(path: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - Typer's own Click
    inner = getattr(command, "commands", None)
    if inner is not None:
        for name, child in inner.items():
            yield from _commands(f"{path} {name}", child)
        return
    context = command.make_context(path, [], resilient_parsing=True, max_content_width=88)
    yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"


def _functions(is_wanted: Callable[[str], bool]) -> str:
    found = sorted(FUNCTION.finditer(dbanon.init_sql()), key=lambda match: match["name"])
    named = groupby(found, key=lambda match: match["name"])
    return "\n".join(_function(name, [*those]) for name, those in named if is_wanted(name))


def _function(name: str, overloaded: list[re.Match[str]]) -> str:
    comments = dict.fromkeys(match["comment"].replace("''", "'") for match in overloaded)
    given = (re.sub(r"\s+", " ", match["arguments"]).strip() for match in overloaded)
    calls = "\n".join(f"dbanon.{name}({arguments})".replace('"', "") for arguments in given)
    return "\n\n".join([f"## dbanon.{name}", *comments, f"```sql\n{calls}\n```"]) + "\n"


def _callable(name: str, function: Callable[..., Any]) -> str:
    signature = re.sub(r"(: |-> )(['\"])(.*?)\2", r"\1\3", str(inspect.signature(function)))
    return f"### {name}\n\n{sentence(function)}.\n\n```text\ndbanon.{name}{signature}\n```"
