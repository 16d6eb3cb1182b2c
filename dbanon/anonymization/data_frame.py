"""Anonymize a data frame without a database."""

from __future__ import annotations

import sys
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbanon.anonymization.encoding.encode import encode
from dbanon.anonymization.encoding.population import Population, encode_population
from dbanon.anonymization.problem import Problem, solve
from dbanon.domain.chance import shuffled
from dbanon.domain.errors import PolicyError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import ColumnKind, TableName, quote_identifier
from dbanon.formats.support import Mode, require

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dbanon.anonymization.outcome import Outcome
    from dbanon.domain.assignment import EncodedTable, Taxonomy

# What Arrow and the libraries of data frames raise for what cannot be converted.
_NOT_ARROW = (pa.ArrowException, OverflowError, TypeError, ValueError)


def anonymize(
    data: Any,  # noqa: ANN401 - whatever exports an Arrow stream
    *,
    k: int,
    l: int = 1,
    models: Sequence[ModelSpec] = (),
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    insensitive: Sequence[str] = (),
    taxonomies: Mapping[str, Taxonomy] | None = None,
    recodings: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    algorithm: str = "auto",
    params: Mapping[str, str | float | bool] | None = None,
    block: int | None = None,
    max_suppressed: float = 0.0,
    population: Any = None,  # noqa: ANN401 - as ``data``
    seed: int = 0,
) -> Any:  # noqa: ANN401 - the kind of table that came in
    """Return the table k-anonymous and l-diverse, with every quasi-identifier recoded to text.

    data: a pyarrow Table or anything with ``__arrow_c_stream__`` (pandas, polars). pandas returns
    pandas, everything else a pyarrow Table. Ordered categories of text keep their order. models:
    further privacy models (``dbanon.models``). taxonomies: by quasi-identifier or sensitive column;
    recodings, weights (of loss, default 1): by quasi-identifier. params: of the algorithm; block:
    group blocks of about this many rows separately. population: table of the population with the
    quasi-identifiers, for population models.

    Only the named columns are returned, rows in random order. Raises PolicyError for columns that
    are missing, named twice or of an unsupported type, and for values that Arrow cannot hold;
    Unsatisfiable if no partition meets k, l and the models.
    """
    trees = taxonomies or {}
    columns = _quasi_columns(quasi, set(trees) - set(sensitive), recodings or {}, weights or {})
    columns += [ColumnRule(name, Role.SENSITIVE, taxonomy=_of(name, trees)) for name in sensitive]
    columns += [ColumnRule(name, Role.INSENSITIVE) for name in insensitive]
    table, orders = _select(data, [rule.column for rule in columns])
    columns = [replace(rule, order=orders.get(rule.column)) for rule in columns]
    policy = Policy(
        table=TableName(None, "data"),
        columns=tuple(columns),
        models=(ModelSpec(K_ANONYMITY, {"k": k}), ModelSpec(L_DIVERSITY, {"l": l}), *models),
        algorithm=algorithm,
        params=params or {},
        block=block,
        max_suppressed=max_suppressed,
    )
    encoded = _encode(table, policy, trees)
    population_counts = None if population is None else _population(population, encoded)
    problem = Problem(encoded, policy, population=population_counts)
    outcome = solve(problem, seed=seed, stages=Stages())
    published = _publish(table, outcome)
    return published.to_pandas() if _is_pandas(data) else published


def _encode(table: pa.Table, policy: Policy, taxonomies: Mapping[str, Taxonomy]) -> EncodedTable:
    require(Mode.FRAME, policy)
    quasi = [rule.column for rule in policy.with_role(Role.QUASI)]
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    kinds = {name: _kind(table.schema.field(name)) for name in (*quasi, *sensitive)}
    source = {name: _canonical(table.column(name), kinds[name], name) for name in quasi}
    source |= {name: _cast(table.column(name), pa.string(), name) for name in sensitive}
    return encode(pa.table(source), policy, kinds=kinds, taxonomies=taxonomies)


def _population(data: Any, encoded: EncodedTable) -> Population:  # noqa: ANN401 - any Arrow stream
    table, _ = _select(data, [column.name for column in encoded.quasi])
    canonical = {
        column.name: _canonical(table.column(column.name), column.kind, column.name)
        for column in encoded.quasi
    }
    return encode_population(pa.table(canonical), encoded)


def _of(name: str, taxonomies: Collection[str]) -> str | None:
    return name if name in taxonomies else None


def _quasi_columns(
    quasi: Sequence[str],
    taxonomies: Collection[str],
    recodings: Mapping[str, str],
    weights: Mapping[str, float],
) -> list[ColumnRule]:
    for name in (*sorted(taxonomies), *recodings, *weights):
        if name not in quasi:
            has = "a weight" if name in weights else "a recoding"
            msg = f"column {quote_identifier(name)} has {has} but is no quasi-identifier"
            raise PolicyError(msg, hint="name it in quasi")
    return [
        ColumnRule(
            name,
            Role.QUASI,
            recoding=recodings.get(name),
            taxonomy=_of(name, taxonomies),
            weight=weights.get(name, 1.0),
        )
        for name in quasi
    ]


def _select(
    data: Any,  # noqa: ANN401 - any Arrow stream
    names: Sequence[str],
) -> tuple[pa.Table, dict[str, tuple[str, ...]]]:
    """Return the requested columns without dictionaries (they disclose other rows), and orders."""
    for name in names:
        if not isinstance(name, str):
            msg = f"columns are named by texts, and one of the names is of type {_type(name)}"
            raise PolicyError(msg, hint="data.columns = data.columns.map(str)")
    table = data if isinstance(data, pa.Table) else _table(data)
    for name in names:
        if table.column_names.count(name) != 1 or names.count(name) != 1:
            msg = f"column {quote_identifier(name)} is missing or named more than once"
            raise PolicyError(msg, hint="name each column of the table once")
    plain, orders = {}, {}
    for name in names:
        column = table.column(name)
        if (order := _order(column, name)) is not None:
            orders[name] = order
        while pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        plain[name] = column
    return pa.table(plain), orders


def _table(data: Any) -> pa.Table:  # noqa: ANN401 - any Arrow stream
    """Return data as an Arrow table; PolicyError hides Arrow's message, which quotes values."""
    try:
        return pa.table(data)
    except _NOT_ARROW:
        pass
    hint = "cast the column first, to texts or floats"
    for name, values in data.items() if _is_pandas(data) or isinstance(data, dict) else ():
        try:
            pa.array(values)
        except _NOT_ARROW:
            msg = f"column {quote_identifier(str(name))} holds values of several types, integers"
            msg = f"{msg} beyond 64 bits, or others that Arrow cannot hold"
            raise PolicyError(msg, hint=hint) from None
    msg = f"{_type(data)} is no table of columns of equal length that have different names"
    raise PolicyError(msg, hint="pass a data frame, an Arrow table or a dict of columns")


def _type(value: object) -> str:
    return type(value).__name__


def _order(column: pa.ChunkedArray, name: str) -> tuple[str, ...] | None:
    """Return ordered text categories in order, None for other columns."""
    kind = column.type
    if not (pa.types.is_dictionary(kind) and kind.ordered and _is_text(kind.value_type)):
        return None
    orders = {tuple(chunk.dictionary.drop_null().to_pylist()) for chunk in column.chunks}
    if len(orders) > 1:
        msg = f"column {quote_identifier(name)} has {len(orders)} orders of its categories"
        raise PolicyError(msg, hint="give all parts of the column the same categories")
    return next(iter(orders), ())


def _kind(column: pa.Field) -> ColumnKind:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return ColumnKind.TIMESTAMPTZ if kind.tz else ColumnKind.TIMESTAMP
    tests = {
        ColumnKind.INTEGER: pa.types.is_integer,
        ColumnKind.FLOAT: pa.types.is_floating,
        ColumnKind.DECIMAL: pa.types.is_decimal,
        ColumnKind.DATE: pa.types.is_date,
        ColumnKind.BOOLEAN: pa.types.is_boolean,
        ColumnKind.CATEGORY: _is_text,
    }
    return next((kind_ for kind_, test in tests.items() if test(kind)), ColumnKind.OTHER)


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_null,
        )
    )


def _canonical(column: pa.ChunkedArray, kind: ColumnKind, name: str) -> pa.ChunkedArray:
    """Return the column in the type that encoding takes; refuse lossy conversions."""
    if kind is ColumnKind.DECIMAL:
        return _exact_floats(column, name)
    targets = {
        ColumnKind.INTEGER: pa.int64(),
        ColumnKind.FLOAT: pa.float64(),
        ColumnKind.DATE: pa.date32(),
        ColumnKind.TIMESTAMP: pa.timestamp("us"),
        ColumnKind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    }
    return _cast(column, targets.get(kind, pa.string()), name)


def _exact_floats(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return decimals as floats with the same shortest text; refuse more digits."""
    encoded = column.combine_chunks().dictionary_encode()
    decimals = encoded.dictionary.to_pylist()
    floats = [float(value) for value in decimals]
    if any(Decimal(repr(near)) != value for near, value in zip(floats, decimals, strict=True)):
        msg = f"column {quote_identifier(name)} holds decimals of more digits than a float64"
        raise PolicyError(msg, hint="round the column first")
    return pa.chunked_array([pa.array(floats, pa.float64()).take(encoded.indices)])


def _cast(column: pa.ChunkedArray, target: pa.DataType, name: str) -> pa.ChunkedArray:
    try:
        return pc.cast(column, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # the message of Arrow holds a value
        msg = f"column {quote_identifier(name)} holds {column.type} that {target} cannot"
        raise PolicyError(msg, hint="cast the column first") from None


def _publish(table: pa.Table, outcome: Outcome) -> pa.Table:
    """Replace the quasi-identifiers, drop suppressed rows and shuffle the rest."""
    group = outcome.assignment.group
    shown = np.flatnonzero(group >= 0)
    rows = shown[shuffled(len(shown))]
    published = {
        column.name: pa.array(column.labels, pa.string()).take(pa.array(column.index[group[rows]]))
        for column in outcome.values.columns
    }
    for name in table.column_names:
        if name not in published:
            published[name] = table.column(name).take(pa.array(rows))
    return pa.table(published)


def _is_pandas(data: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)
