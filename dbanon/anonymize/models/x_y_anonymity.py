"""(X, Y)-anonymity (Wang, Fung, KDD 2006): every X value is linked to at least k Y values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dbanon.anonymize.interfaces import Demand
from dbanon.anonymize.models.bounds import Bound
from dbanon.anonymize.models.tally import joint_codes, tally, whole_of
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.models import X_Y_ANONYMITY, arguments, title
from dbanon.domain.table import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dbanon.anonymize.metrics import Publication
    from dbanon.anonymize.models.tally import Tally, Whole
    from dbanon.domain.assignment import EncodedTable
    from dbanon.domain.policy import ModelSpec, Policy


@dataclass(frozen=True, slots=True)
class XYAnonymity:
    """Every published value of the columns ``x`` occurs with at least k of the columns ``y``.

    x: all quasi-identifiers if none is named. Both are sets of published columns, and share none.
    """

    k: int
    x: tuple[str, ...]
    y: tuple[str, ...]
    bound: ClassVar[Bound] = Bound.AT_LEAST

    @property
    def required(self) -> float:
        """The least number of values of y."""
        return self.k

    def achieved(self, tally: Tally, whole: Whole) -> NDArray[np.float64]:  # noqa: ARG002 - counts
        """Return the number of distinct values of y of each value of x."""
        return tally.distinct().astype(float)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of X and Y by their places; those of X that are quasi-identifiers first."""

    x_quasi: tuple[int, ...]
    x_sensitive: tuple[int, ...]
    y_quasi: tuple[int, ...]
    y_sensitive: tuple[int, ...]

    @property
    def searchable(self) -> bool:
        """Whether it is enough that every group has k values, which merging groups can reach."""
        return bool(self.x_quasi) and not self.y_quasi


def x_y_demands(table: EncodedTable, policy: Policy) -> Iterator[Demand]:
    """Yield what groups can be merged for; raises Unsatisfiable when all rows together miss it.

    A group with k values of y has them for every value of x that its rows show, so that this is
    enough, and more than needed where x is not every quasi-identifier.
    """
    spec = policy.model(X_Y_ANONYMITY)
    if spec is None:
        return
    columns, model = _columns(table, spec), _model(spec)
    _require_reachable(table, spec, columns, k=model.k)
    if columns.searchable:
        first, *others = columns.y_sensitive
        yield Demand(spec, model, first, columns.x_sensitive, tuple(others))


def x_y_holds(published: Publication, spec: ModelSpec) -> bool:
    """Whether what is published meets the model, counted on the values that readers see."""
    table, model = published.table, _model(spec)
    columns, rows = _columns(table, spec), np.flatnonzero(published.classes >= 0)
    groups = published.assignment.group[rows]
    shown = [column.index[groups] for column in published.values.columns]

    def codes(quasi: tuple[int, ...], sensitive: tuple[int, ...]) -> NDArray[np.int32]:
        picked = [shown[i] for i in quasi] + [table.sensitive[rows, i] for i in sensitive]
        return joint_codes(np.column_stack(picked))

    counted = tally(
        codes(columns.x_quasi, columns.x_sensitive), codes(columns.y_quasi, columns.y_sensitive)
    )
    level = model.achieved(counted, whole_of(np.zeros(1, np.int32), None))
    return bool(model.bound.holds(level, model.required).all())


def _model(spec: ModelSpec) -> XYAnonymity:
    found = arguments(spec)
    k, x, y = found["k"], found["x"], found["y"]
    assert isinstance(k, int)  # noqa: S101 - as ``require_valid`` has seen to
    assert isinstance(x, tuple)  # noqa: S101
    assert isinstance(y, tuple)  # noqa: S101
    return XYAnonymity(k, x, y)


def _columns(table: EncodedTable, spec: ModelSpec) -> _Columns:
    """Find the columns; raises PolicyError for one that is neither quasi nor sensitive."""
    quasi, model = [column.name for column in table.quasi], _model(spec)
    for name in (*model.x, *model.y):
        if name not in quasi and name not in table.sensitive_names:
            msg = (
                f"{spec.name}: {quote_identifier(name)} is neither a quasi-identifier nor a"
                " sensitive column"
            )
            raise PolicyError(msg, hint="for k distinct persons name them: subject = COLUMN")
    x = model.x or tuple(name for name in quasi if name not in model.y)

    def places(names: tuple[str, ...], known: list[str]) -> tuple[int, ...]:
        return tuple(known.index(name) for name in names if name in known)

    sensitive = list(table.sensitive_names)
    return _Columns(
        places(x, quasi), places(x, sensitive), places(model.y, quasi), places(model.y, sensitive)
    )


def _require_reachable(table: EncodedTable, spec: ModelSpec, columns: _Columns, *, k: int) -> None:
    """Raise Unsatisfiable when some value of x has too few values of y in the whole table.

    Values that are recoded only become fewer, so that this is necessary whatever is published.
    """
    codes = [table.quasi[i].codes for i in columns.y_quasi]
    codes += [table.sensitive[:, i] for i in columns.y_sensitive]
    values = joint_codes(np.column_stack(codes))
    of_x = np.zeros(table.n_rows, np.int32)
    if columns.x_sensitive:
        of_x = joint_codes(table.sensitive[:, list(columns.x_sensitive)])
    fewest = int(tally(of_x, values).distinct().min())
    if fewest < k:
        among = " with some value of x" if columns.x_sensitive else ""
        names = ", ".join(map(quote_identifier, _model(spec).y))
        msg = f"{names} has {fewest} different values{among}: {title(spec)} is impossible"
        raise Unsatisfiable(msg, hint=f"ask for k <= {fewest}, or take more columns into y")
