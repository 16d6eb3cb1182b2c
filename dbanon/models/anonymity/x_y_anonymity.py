"""(X, Y)-anonymity (Wang, Fung, KDD 2006): every X value is linked to at least k Y values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.table import quote_identifier
from dbanon.models.base import COUNT, TEXTS, Demand, DistinctModel, Parameter, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from dbanon.domain.assignment import EncodedTable, GroupValues
    from dbanon.domain.policy import ModelSpec

_SOME = Parameter(tuple, default=())


@dataclass(frozen=True, slots=True)
class XYAnonymity(DistinctModel):
    """Every published value of the columns ``x`` occurs with at least k of the columns ``y``.

    x, y: disjoint sets of published columns, x by default all quasi-identifiers.
    """

    k: int = field(metadata=COUNT.field())
    x: tuple[str, ...] = field(metadata=_SOME.field())
    y: tuple[str, ...] = field(metadata=TEXTS.field())

    title = "(X, Y)-anonymity with k = {k}"
    limit = "k"
    scope = Scope.LINKS
    apart = ("x", "y")
    of_whole = True

    def demands(self, spec: ModelSpec, table: EncodedTable) -> Iterator[Demand]:
        """Yield the demands for merging, sufficient conditions; Unsatisfiable if all rows fail."""
        columns = _columns(self, table)
        _require_reachable(self, table, columns)
        if columns.searchable:
            first, *others = columns.y_sensitive
            yield Demand(spec, self, first, columns.x_sensitive, tuple(others))

    def holds(self, table: EncodedTable, group: NDArray[np.int32], values: GroupValues) -> bool:
        """Return True if the published values of the groups, (n,), meet it."""
        import numpy as np

        from dbanon.models.tally import joint_codes, tally, whole_of

        columns, rows = _columns(self, table), np.flatnonzero(group >= 0)
        shown = [column.index[group[rows]] for column in values.columns]

        def codes(quasi: tuple[int, ...], sensitive: tuple[int, ...]) -> NDArray[np.int32]:
            picked = [shown[i] for i in quasi] + [table.sensitive[rows, i] for i in sensitive]
            return joint_codes(np.column_stack(picked))

        counted = tally(
            codes(columns.x_quasi, columns.x_sensitive), codes(columns.y_quasi, columns.y_sensitive)
        )
        level = self.achieved(counted, whole_of(np.zeros(1, np.int32), None))
        return bool(self.meets(level).all())


@dataclass(frozen=True, slots=True)
class _Columns:
    """Indices of the columns of X and Y; those of X that are quasi-identifiers first."""

    x_quasi: tuple[int, ...]
    x_sensitive: tuple[int, ...]
    y_quasi: tuple[int, ...]
    y_sensitive: tuple[int, ...]

    @property
    def searchable(self) -> bool:
        """True if k values in every group suffice, which merging can reach."""
        return bool(self.x_quasi) and not self.y_quasi


def _columns(model: XYAnonymity, table: EncodedTable) -> _Columns:
    """Find the columns; raises PolicyError for one that is neither quasi nor sensitive."""
    quasi = [column.name for column in table.quasi]
    for name in (*model.x, *model.y):
        if name not in quasi and name not in table.sensitive_names:
            msg = (
                f"x-y-anonymity: {quote_identifier(name)} is neither a quasi-identifier nor a"
                " sensitive column"
            )
            raise PolicyError(msg, hint="for k distinct persons name them: subject = COLUMN")
    x = model.x or tuple(name for name in quasi if name not in model.y)
    if not x:
        msg = "x-y-anonymity: all quasi-identifiers are in y, which leaves none for x"
        raise PolicyError(msg, hint="name the columns of x, or take one out of y")

    def places(names: tuple[str, ...], known: list[str]) -> tuple[int, ...]:
        return tuple(known.index(name) for name in names if name in known)

    sensitive = list(table.sensitive_names)
    return _Columns(
        places(x, quasi), places(x, sensitive), places(model.y, quasi), places(model.y, sensitive)
    )


def _require_reachable(model: XYAnonymity, table: EncodedTable, columns: _Columns) -> None:
    """Raise Unsatisfiable if a value of x has too few values of y; recoding only reduces them."""
    import numpy as np

    from dbanon.models.tally import joint_codes, tally

    codes = [table.quasi[i].codes for i in columns.y_quasi]
    codes += [table.sensitive[:, i] for i in columns.y_sensitive]
    values = joint_codes(np.column_stack(codes))
    of_x = np.zeros(table.n_rows, np.int32)
    if columns.x_sensitive:
        of_x = joint_codes(table.sensitive[:, list(columns.x_sensitive)])
    fewest = int(tally(of_x, values).distinct().min())
    if fewest < model.k:
        among = " with some value of x" if columns.x_sensitive else ""
        names = ", ".join(map(quote_identifier, model.y))
        msg = f"{names} has {fewest} different values{among}: {model} is impossible"
        raise Unsatisfiable(msg, hint=f"ask for k <= {fewest}, or take more columns into y")
