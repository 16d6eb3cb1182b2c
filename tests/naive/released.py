"""Which classes cover a row, label by label."""

from __future__ import annotations


def is_covered(cells, label, code, *, size):
    """Whether a label of a column covers a code."""
    if code == size:
        return bool(cells.nulls[label])
    if cells.members is not None:
        first, last = cells.members.start[label : label + 2]
        return code in cells.members.codes[first:last].tolist()
    return bool(cells.lo[label] <= code <= cells.hi[label])


def covers(released, rows):
    """Return the classes that cover each of some rows."""
    columns = list(zip(released.columns, released.table.quasi, strict=False))
    return [
        [
            one
            for one in range(released.n_classes)
            if all(
                cells.is_point
                or is_covered(cells, cells.index[one], column.codes[row], size=column.size)
                for cells, column in columns
            )
        ]
        for row in rows
    ]
