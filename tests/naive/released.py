"""Which classes cover a row, label by label, and what readers take a class for."""

from __future__ import annotations

from naive import common_ancestor, leaves_below


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


def taken_for(column, recoding, classes, at):
    """Return what readers take one of some classes of codes for: each value with its probability.

    Values are numbers, texts or None; of whole numbers also those that the source lacks. A range of
    these without ends reaches as far as the others do.
    """
    codes = classes[at]
    values = [*column.values.tolist(), None]
    known = [code for code in codes if code < column.size]
    if recoding == "set":
        among = [values[code] for code in sorted(set(codes))]
    elif not known:
        among = [None]
    elif recoding == "mode":
        among = [values[min(sorted(set(codes)), key=lambda code: (-codes.count(code), code))]]
    elif column.taxonomy is not None:
        mixed = len(known) < len(codes)
        node = 0 if mixed else common_ancestor(column.taxonomy, known)
        among = [column.taxonomy.labels[leaf] for leaf in leaves_below(column.taxonomy, node)]
    else:
        mixed = len(known) < len(codes)
        whole = column.values.dtype.kind == "i"
        first, last = (0, column.size - 1) if mixed else (min(known), max(known))
        shown = [code for one in classes if max(one) < column.size for code in one]
        if mixed and whole and shown:
            first, last = min(shown), max(shown)
        inside = range(values[first], values[last] + 1) if whole else values[first : last + 1]
        among = list(inside)
    return {value: 1 / len(among) for value in among}
