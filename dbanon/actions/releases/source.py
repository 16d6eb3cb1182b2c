"""The rows of the table of a release, as they are now."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from dbanon.domain.errors import (
    ConfigError,
    DriftError,
    PolicyError,
    TaxonomyError,
    Unsatisfiable,
)
from dbanon.domain.policy import Role
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.db.transfer import SourceRows
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo
    from dbanon.domain.taxonomy import Taxonomy


class Rows(NamedTuple):
    """The rows of a table as codes; persons: whose each is if the policy has subjects."""

    table: EncodedTable
    persons: NDArray[np.int32] | None


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """The rows of a table as they were read."""

    info: TableInfo
    policy: Policy
    trees: Mapping[str, Taxonomy]
    rows: SourceRows

    def encoded(self) -> Rows:
        """Encode all rows; raises DriftError for what has no code."""
        from dbanon.actions.preparation.prepare import subjects_of
        from dbanon.anonymization.encoding.encode import encode

        columns = self.rows.columns
        kinds = {column.name: column.kind for column in self.info.columns}
        with _as_drift(self.info):
            table = encode(columns, self.policy, kinds=kinds, taxonomies=self.trees)
            persons = None
            if self.policy.subject is not None:
                persons = subjects_of(columns, self.policy)[0]
        return Rows(replace(table, weights=_weights(columns, self.policy)), persons)


def keyless(info: TableInfo) -> TableInfo:
    """Return a table of which no keys are read."""
    return replace(info, primary_key=())


def read_source(
    session: Session,
    info: TableInfo,
    policy: Policy,
    trees: Mapping[str, Taxonomy],
    *,
    weighted: bool = False,
) -> Source:
    """Read the rows of a table; raises DriftError when they no longer fit the release.

    weighted: whether survey weights are read, too.
    """
    from dbanon.actions.preparation.prepare import with_subject
    from dbanon.db import transfer

    with _as_drift(info):
        _require_columns(info, policy)
        transfer.require_fit(session, info, policy)
        # What is published masked is not read besides: what is true is held against it.
        asked = replace(with_subject(policy), masking=())
        if weighted:
            asked = _with_weights(asked)
        rows = transfer.read(session, info, asked)
    return Source(info, policy, trees, _in_order(rows, policy))


def _with_weights(policy: Policy) -> Policy:
    """Return the policy under which weights are read as sensitive columns are."""
    columns = (
        replace(rule, role=Role.SENSITIVE) if rule.role is Role.WEIGHT else rule
        for rule in policy.columns
    )
    return replace(policy, columns=tuple(columns))


def _weights(columns: pa.Table, policy: Policy) -> NDArray[np.float64] | None:
    """Return how many persons each row stands for, None if weights were not read.

    A row of a sample stands for as many more. Raises ConfigError for what is no weight.
    """
    import numpy as np

    from dbanon.anonymization.encoding.encode import distinct_values

    if policy.weight is None or policy.weight not in columns.column_names:
        return None
    place, distinct = distinct_values(columns.column(policy.weight))
    weights = np.array([*map(float, distinct.to_pylist()), np.nan])[place]
    wrong = np.count_nonzero(~(np.isfinite(weights) & (weights > 0.0)))
    if wrong:
        raise ConfigError(
            f"weight column {quote_identifier(policy.weight)} of {policy.table} is NULL, infinite"
            f" or not above 0 in {wrong:,} rows",
            hint="correct them, leave these rows out by where = [...], or give the column the role"
            " identifier",
        )
    return weights / (policy.sample or 1.0)


def _in_order(rows: SourceRows, policy: Policy) -> SourceRows:
    """Return rows in the order of what they hold, the subject and the weight last.

    Figures are drawn by the place of a row, and its place in the table depends on others.
    """
    import numpy as np
    import pyarrow.compute as pc

    from dbanon.anonymization.encoding.encode import distinct_values

    last = {policy.subject: 1, policy.weight: 2}
    names = sorted(rows.columns.column_names, key=lambda name: (last.get(name, 0), name))
    if not names:
        return rows
    ranks = []
    for name in names:
        place, distinct = distinct_values(rows.columns.column(name))
        rank = pc.rank(distinct, tiebreaker="dense").to_numpy()
        ranks.append(np.append(rank, 0)[place])  # 0 for NULL, whose place is -1
    return rows.take(np.lexsort(ranks[::-1]))


@contextmanager
def _as_drift(info: TableInfo) -> Iterator[None]:
    try:
        yield
    except (PolicyError, TaxonomyError, Unsatisfiable) as error:
        msg = f"{info.name} no longer has what the release was made of: {error}"
        raise DriftError(msg, hint=command("dbanon refresh", info.name)) from None


def _require_columns(info: TableInfo, policy: Policy) -> None:
    there = {column.name for column in info.columns}
    missing = [rule.column for rule in policy.columns if rule.column not in there]
    if missing:
        raise PolicyError(f"it has no column {', '.join(map(quote_identifier, missing))}")
