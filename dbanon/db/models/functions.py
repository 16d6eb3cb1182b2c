"""The functions of the schema ``dbanon``: those in files, and the checks of privacy models.

Each check is one template around the model's fragment in ``sql/models``. The fragment computes what
each class achieves, from ``cells`` (counts of values per class), ``classes`` (rows and distinct
values) or ``presence`` (its coverage of a population).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon import resources
from dbanon.db.queries import function, template
from dbanon.models.base import HIERARCHICAL, ORDERED, Bound, Model, Parameter, Scope
from dbanon.models.registry import MODELS, arguments, is_strict, sensitive_of, texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.domain.assignment import Taxonomy
    from dbanon.domain.policy import ModelSpec


TYPES: Mapping[type, sql.SQL] = {
    int: sql.SQL("integer"),
    float: sql.SQL("double precision"),
    str: sql.SQL("text"),
    tuple: sql.SQL("text[]"),
}
"""How PostgreSQL calls the types of parameters."""

_FUNCTION = re.compile(r"FUNCTION dbanon\.(\w+)")
# A role that may attach a trigger chooses its table, and thereby the type code that runs.
_PRIVILEGED = re.compile(r"^(RETURNS trigger|SECURITY DEFINER)$", re.MULTILINE)
# Publishers attach this one to releases. It runs as the writer, and only raises.
_OF_PUBLISHERS = {"refuse_change"}
_HOLDS = {
    Bound.AT_LEAST: sql.SQL("{} >= {}"),
    Bound.AT_MOST: sql.SQL("{} <= {}"),
    Bound.BELOW: sql.SQL("{} < {}"),
}
_COUNTED = sql.SQL("e.achieved")
_MEASURED = sql.SQL("nullif(e.achieved, 'NaN')")  # which PostgreSQL sorts above all numbers
_TOLERANT = {
    Bound.AT_LEAST: sql.SQL("{} - 1e-9"),
    Bound.AT_MOST: sql.SQL("{} + 1e-9"),
    Bound.BELOW: sql.SQL("{} - 1e-9"),
}
_WORST = {
    Bound.AT_LEAST: sql.SQL("min(e.achieved)"),
    Bound.AT_MOST: sql.SQL("max(e.achieved)"),
    Bound.BELOW: sql.SQL("max(e.achieved)"),
}
_QUASI = ("quasi_identifiers", "text[]")
_COLUMNS = {
    Scope.CLASSES: (_QUASI,),
    Scope.SENSITIVE: (_QUASI, ("sensitive", "text")),
    Scope.LINKS: (),  # its columns are parameters
    Scope.POPULATION: (_QUASI, ("population", "regclass")),
}
_INPUTS = {
    Scope.CLASSES: "checks.input_of_classes",
    Scope.SENSITIVE: "checks.input_of_sensitive",
    Scope.LINKS: "checks.input_of_links",
    Scope.POPULATION: "checks.input_of_population",
}


def statements() -> Iterator[sql.SQL | sql.Composed]:
    """Yield the statements that create or replace all functions; PUBLIC loses privileged ones."""
    for statement in _definitions():
        yield statement
        text = statement.as_string()
        if _PRIVILEGED.search(text):
            for name in dict.fromkeys(_FUNCTION.findall(text)).keys() - _OF_PUBLISHERS:
                yield sql.SQL("REVOKE ALL ON FUNCTION {} FROM PUBLIC").format(
                    _named("dbanon", name)
                )


def _definitions() -> Iterator[sql.SQL | sql.Composed]:
    for name in resources.sql_names("functions"):
        yield function(name)
    yield from range_functions()
    for name in MODELS:
        yield _create_check(name)
    yield template("checks.create_verify_model", cases=sql.SQL("\n").join(map(_case, MODELS)))
    of_columns, of_links = (
        sql.Literal([name for name, model in MODELS.items() if model.scope is scope])
        for scope in (Scope.SENSITIVE, Scope.LINKS)
    )
    yield template("checks.create_verify_promise", of_columns=of_columns, of_links=of_links)
    yield template("checks.create_verify")


def names() -> Iterator[str]:
    """Yield the names of all functions."""
    for statement in _definitions():
        yield from dict.fromkeys(_FUNCTION.findall(statement.as_string()))


def check_name(model: str) -> str:
    """Name the function that checks a model."""
    return f"check_{_stem(model)}"


def arithmetic(model: str, values: Mapping[str, sql.Composable]) -> sql.Composed:
    """Compose a model's computation, with fragments it names; values: its parameters."""
    text = _opened(resources.sql("models", _place(model)))[1]
    others = [other for other in MODELS if f"{{{_stem(other)}}}" in text]
    within = {_stem(other): arithmetic(other, values) for other in others}
    return sql.SQL(text).format(**values, **within)


def reads_classes(model: str) -> bool:
    """Return True if a model needs the number of values of each class, and not the values."""
    return "FROM classes" in resources.sql("models", _place(model))


_RUNS = sql.SQL("e.class >> 40")


def class_in_run(run: sql.Composable, quasi: sql.Composable) -> sql.Composed:
    """Compose the number of a class in a run of releases, which ``by_run`` reads from it."""
    return sql.SQL("({}::bigint << 40) + dense_rank() OVER (ORDER BY {})").format(run, quasi)


def by_run(*, is_wanted: bool) -> dict[str, sql.Composable]:
    """Compose the slots that judge the classes of each run, or all classes."""
    if not is_wanted:
        return {"run": sql.SQL(""), "by_run": sql.SQL("")}
    run, by = sql.SQL("{} AS run, "), sql.SQL("\n GROUP BY {}")
    return {"run": run.format(_RUNS), "by_run": by.format(_RUNS)}


def model_results(
    name: str, values: Mapping[str, sql.Composable], *, given: sql.Composable, in_runs: bool = False
) -> sql.Composed:
    """Compose a model's check of classes; given: its fragment's input, part of a WITH clause.

    in_runs: judge those of each run of releases by themselves, see ``class_in_run``.
    """
    model = MODELS[name]
    failing = fails(model, values)
    required, worst = _judged(model, values, failing)
    return _inline(
        "checks.judge",
        **_types(model),
        input=given,
        arithmetic=arithmetic(name, values),
        required=required,
        worst=worst,
        fails=failing,
        **by_run(is_wanted=in_runs),
    )


def _types(model: type[Model]) -> dict[str, sql.Composable]:
    return {
        "of_required": TYPES[int] if model.counts else TYPES[float],
        "of_achieved": sql.SQL("bigint") if model.counts else TYPES[float],
    }


def fails(model: type[Model], values: Mapping[str, sql.Composable]) -> sql.Composed:
    """Compose the condition that a class ``e`` fails a model; NULL and NaN fail."""
    conditions = [_holds(model, model.limit, values, bound=model.bound)]
    if model.floor is not None:
        conditions.append(_holds(model, model.floor, values, bound=Bound.AT_LEAST))
    return sql.SQL("({}) IS NOT TRUE").format(sql.SQL(" AND ").join(conditions))


def _holds(
    model: type[Model], name: str, values: Mapping[str, sql.Composable], *, bound: Bound
) -> sql.Composed:
    """Compose the condition that a class keeps a bound; counts are compared without tolerance."""
    is_counted = model.parameters()[name].kind is int
    if is_counted:
        return _HOLDS[bound].format(_COUNTED, values[name])
    return _HOLDS[bound].format(_MEASURED, _TOLERANT[bound].format(values[name]))


def _named(*parts: str) -> sql.SQL:
    return sql.SQL(".".join(parts))


def _stem(model: str) -> str:
    return model.replace("-", "_")


def _place(model: str) -> str:
    """Return the path of a model's fragment, which mirrors its module."""
    return MODELS[model].__module__.removeprefix("dbanon.models.").replace(".", "/")


def _opened(text: str) -> tuple[str, str]:
    """Split a text into its opening comment line and the rest."""
    sentence, _, text = text.partition("\n")
    return sentence.removeprefix("-- "), text.rstrip()


def _inline(name: str, **slots: sql.Composable) -> sql.Composed:
    """Fill a template that is part of a statement, without its opening comment."""
    return sql.SQL(_opened(resources.statement(name))[1]).format(**slots)


def _create_check(name: str) -> sql.Composed:
    model, check = MODELS[name], check_name(name)
    values = {parameter: _named(check, parameter) for parameter in model.parameters()}
    declared = list(_arguments(model))
    return template(
        "checks.create_check",
        check=_named(check),
        arguments=sql.SQL(",\n    ").join(
            sql.SQL(" ").join([_named(argument), kind, *default])
            for argument, kind, default in declared
        ),
        types=sql.SQL(", ").join(kind for _, kind, _ in declared),
        **_types(model),
        allowed=sql.SQL("\n                    AND ").join(_allowed(model, values)),
        refusal=sql.Literal(f"{check} needs {_needs(model)}"),
        judged=model_results(
            name, {**values, "tree": _named(check, "tree")}, given=_inline(_INPUTS[model.scope])
        ),
        sentence=sql.Literal(_opened(resources.sql("models", _place(name)))[0]),
    )


def _arguments(model: type[Model]) -> Iterator[tuple[str, sql.SQL, list[sql.Composable]]]:
    for name, kind in (("relation", "regclass"), *_COLUMNS[model.scope]):
        yield name, sql.SQL(kind), []
    known = model.parameters()
    if model.scope is Scope.LINKS:
        lists = {name: p for name, p in known.items() if p.kind is tuple}
        yield from ((name, TYPES[tuple], []) for name in lists)
        known = {name: p for name, p in known.items() if name not in lists}
    yield from ((name, TYPES[p.kind], []) for name, p in known.items() if p.default is None)
    for name, parameter in known.items():
        if parameter.default is not None:
            default = sql.SQL("DEFAULT {}").format(sql.Literal(parameter.default))
            yield name, TYPES[parameter.kind], [default]
    if "distance" in known:
        yield "tree", sql.SQL("jsonb"), [sql.SQL("DEFAULT NULL")]
    if model.scope is Scope.POPULATION:
        yield "trees", sql.SQL("jsonb"), [sql.SQL("DEFAULT '{}'")]


def _judged(
    model: type[Model], values: Mapping[str, sql.Composable], failing: sql.Composed
) -> tuple[sql.Composable, sql.Composable]:
    """Return the required value and that of the worst class, for the bound that it misses."""
    limit, worst = values[model.limit], _WORST[model.bound]
    if model.floor is None:
        return limit, worst
    kept = _holds(model, model.limit, values, bound=model.bound)
    only_below = sql.SQL("bool_or({}) AND NOT bool_or(({}) IS NOT TRUE)").format(failing, kept)
    either = sql.SQL("CASE WHEN {} THEN {} ELSE {} END")
    return (
        either.format(only_below, values[model.floor], limit),
        either.format(only_below, _WORST[Bound.AT_LEAST], worst),
    )


def _allowed(model: type[Model], values: Mapping[str, sql.Composable]) -> Iterator[sql.Composable]:
    for name, parameter in model.parameters().items():
        yield from _within(parameter, values[name])
    if model.ascending is not None:
        yield sql.SQL("{} <= {}").format(*(values[name] for name in model.ascending))
    if model.apart is not None:
        yield sql.SQL("NOT {} && {}").format(*(values[name] for name in model.apart))


def _within(parameter: Parameter, value: sql.Composable) -> Iterator[sql.Composable]:
    if parameter.kind is tuple:
        yield sql.SQL("cardinality({0}) > 0 AND array_position({0}, NULL) IS NULL").format(value)
    elif parameter.kind is str:
        among = sql.SQL(", ").join(map(sql.Literal, parameter.among))
        yield sql.SQL("{} IN ({})").format(value, among)
    else:
        lower = sql.SQL("{} > {}") if parameter.above else sql.SQL("{} >= {}")
        yield lower.format(value, sql.Literal(parameter.least))
        if parameter.kind is float:  # an integer of the database is never too large
            most = parameter.most if math.isfinite(parameter.most) else None
            upper = sql.SQL("{} < 'Infinity'") if most is None else sql.SQL("{} <= {}")
            yield upper.format(*([value] if most is None else [value, sql.Literal(most)]))


def _needs(model: type[Model]) -> str:
    needs = [parameter.spelled(name) for name, parameter in model.parameters().items()]
    if model.ascending is not None:
        needs.append(" <= ".join(model.ascending))
    if model.apart is not None:
        needs.append(" and ".join(model.apart) + " that share no column")
    return ", ".join(needs)


def _case(name: str) -> sql.Composed:
    model = MODELS[name]
    given = {parameter: _given(parameter, p) for parameter, p in model.parameters().items()}
    if model.scope is Scope.POPULATION:
        return _inline(
            "checks.verify_population", model=sql.Literal(name), required=given[model.limit]
        )
    if model.scope is Scope.LINKS and model.apart is not None:
        first, second = model.apart
        given[first] = sql.SQL("CASE WHEN params ? {} THEN {} ELSE {} END").format(
            sql.Literal(first),
            given[first],
            _inline("checks.all_other_columns", others=sql.Literal(second)),
        )
    if "distance" in given:
        given["tree"] = sql.SQL("tree")
    columns = [_named(column) for column, _ in _COLUMNS[model.scope]]
    named = [sql.SQL("{} => {}").format(_named(p), value) for p, value in given.items()]
    return _inline(
        "checks.verify_case",
        model=sql.Literal(name),
        check=_named(check_name(name)),
        arguments=sql.SQL(", ").join([*columns, *named]),
    )


def _given(name: str, parameter: Parameter) -> sql.Composable:
    key = sql.Literal(name)
    if parameter.kind is tuple:
        return sql.SQL("ARRAY(SELECT jsonb_array_elements_text(params -> {}))").format(key)
    value = sql.SQL("(params ->> {})::{}").format(key, TYPES[parameter.kind])
    if parameter.default is None:
        return value
    return sql.SQL("coalesce({}, {})").format(value, sql.Literal(parameter.default))


_NUMBERS = {"int4range": 1, "int8range": 1, "numrange": 0}
"""Between which values of a range there is nothing, 0 where there always is something."""
_TIMES = {
    "daterange": ("date", "1"),
    "tsrange": ("timestamp", "'0'::pg_catalog.interval"),
    "tstzrange": ("timestamptz", "'0'::pg_catalog.interval"),
}
"""The types of the values of a range, and the same of them."""


def range_functions() -> Iterator[sql.Composed]:
    """Yield the statements that create the functions."""
    for name, step in _NUMBERS.items():
        yield _create_share(name, number="pg_catalog.float8", unit="", volatility="IMMUTABLE")
        slots = {"range": sql.SQL(name), "step": sql.Literal(step)}
        yield template("estimates.create_middle_of_numbers", **slots)
    for name, (value, gap) in _TIMES.items():
        # PostgreSQL declares time zone functions STABLE, and inlines nothing less strict.
        volatility = "STABLE" if value == "timestamptz" else "IMMUTABLE"
        part, epoch = "pg_catalog.date_part", "'epoch', "
        yield _create_share(name, number=part, unit=epoch, volatility=volatility)
        yield template(
            "estimates.create_middle_of_times",
            range=sql.SQL(name),
            value=sql.SQL(value),
            step=sql.SQL(gap),
            volatility=sql.SQL(volatility),
        )


def _create_share(name: str, *, number: str, unit: str, volatility: str) -> sql.Composed:
    return template(
        "estimates.create_share",
        range=sql.SQL(name),
        number=sql.SQL(number),
        unit=sql.SQL(unit),
        volatility=sql.SQL(volatility),
    )


class Demand(NamedTuple):
    """A model to check on a sensitive column; quasi: the columns of its classes.

    For (X, Y)-anonymity, quasi is X and column lists Y. For a model of the rows of classes or of a
    population, column is empty.
    """

    spec: ModelSpec
    column: str
    quasi: tuple[str, ...]


def demands(
    models: Iterable[ModelSpec], *, quasi: Sequence[str], sensitive: Sequence[str]
) -> Iterator[Demand]:
    """Yield the checks of models, one for each sensitive column."""
    for spec in models:
        match MODELS[spec.name].scope:
            case Scope.SENSITIVE:
                for column in sensitive_of(spec, sensitive):
                    others = [name for name in sensitive if name != column]
                    yield Demand(spec, column, (*quasi, *(others if is_strict(spec) else ())))
            case Scope.LINKS:
                y = texts(spec, "y")
                x = texts(spec, "x") or tuple(name for name in quasi if name not in y)
                yield Demand(spec, ", ".join(y), x)
            case _:
                yield Demand(spec, "", tuple(quasi))


def model_statement(
    relation: sql.Composable,
    demand: Demand,
    *,
    trees: Mapping[str, object],
    population: sql.Composable | None = None,
) -> sql.Composed:
    """Compose the call of the check.

    relation, population: expressions of type regclass; trees: taxonomies or orders of sensitive
    columns, or for a population, labels of quasi-identifiers.
    """
    spec = demand.spec
    given: dict[str, object] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in arguments(spec).items()
    }
    if given.get("distance") in {HIERARCHICAL, ORDERED} and demand.column in trees:
        given["tree"] = Jsonb(trees[demand.column])
    columns: list[sql.Composable] = [sql.Literal(list(demand.quasi))]
    match MODELS[spec.name].scope:
        case Scope.SENSITIVE:
            columns.append(sql.Literal(demand.column))
        case Scope.LINKS:
            columns, given["x"] = [], list(demand.quasi)
    if population is not None:
        columns.append(population)
        given["trees"] = Jsonb(trees)
    named = [
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in given.items()
    ]
    return sql.SQL("SELECT * FROM {}({})").format(
        sql.Identifier("dbanon", check_name(spec.name)),
        sql.SQL(", ").join([relation, *columns, *named]),
    )


def judged_in_runs(demand: Demand, *, given: sql.Composable) -> sql.Composed:
    """Compose the check of a sensitive column in runs; given: its input."""
    known, values = MODELS[demand.spec.name].parameters(), {}
    for name, value in arguments(demand.spec).items():
        literal = sql.Literal(list(value) if isinstance(value, tuple) else value)
        values[name] = sql.SQL("{}::{}").format(literal, TYPES[known[name].kind])
    return model_results(demand.spec.name, values, given=given, in_runs=True)


class TreeDocument(TypedDict, total=False):
    """A taxonomy, an order, or both, as the functions of the database take them."""

    parent: list[int]
    leaves: dict[str, int]
    order: list[str]


def tree_document(tree: Taxonomy) -> TreeDocument:
    """Return a taxonomy as ``dbanon.tree_edges`` takes it."""
    leaves = {tree.labels[node]: node for node in tree.leaves.tolist()}
    return {"parent": tree.parent.tolist(), "leaves": leaves}


def order_document(order: Sequence[str]) -> TreeDocument:
    """Return an order of values as ``dbanon.distances`` takes it."""
    return {"order": list(order)}


def shown_trees(
    trees: Mapping[str, TreeDocument], columns: pa.Table, *, group: NDArray[np.int32]
) -> dict[str, object]:
    """Return documents of taxonomies and orders without unpublished values.

    group: of each row, -1 if suppressed. The comment is public, and a tree may have labels of
    suppressed rows only. Leaves stay without names, because distances depend on them.
    """
    return {
        name: _named_only(
            tree, set(columns.column(name).take((group >= 0).nonzero()[0]).to_pylist())
        )
        for name, tree in trees.items()
    }


def _named_only(document: TreeDocument, shown: Collection[str]) -> TreeDocument:
    known = document.copy()
    if "order" in document:
        known["order"] = [label for label in document["order"] if label in shown]
    if "leaves" in document:
        known["leaves"] = {}
        for label, node in document["leaves"].items():
            name = label if label in shown else f"({node})"
            while name != label and name in document["leaves"]:
                name = f"({name})"
            known["leaves"][name] = node
    return known
