"""Taxonomies as CSV, as stored rows and as a drawing."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from itertools import chain, pairwise
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from dbanon.domain.assignment import ROOT_LABEL, Taxonomy
from dbanon.domain.errors import ConfigError, TaxonomyError
from dbanon.domain.text import command, converted, unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


# A million leaves of five levels, which take half a minute and two gigabytes.
MAX_LABELS = 5_000_000

_BOM = "\ufeff"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LEVELS, _EDGES = ";", ","
_HEADER = ["parent", "child"]
# Column names that make the first line of levels a header.
_NAMES = re.compile(r"(value|leaf|code|label|name|group|parent|root|all|(level|group)[ _-]?\d+)")


def read_csv(
    source: Path | str,
    *,
    name: str,
    form: Literal["auto", "levels", "edges"] = "auto",
    inner_values: bool = False,
) -> Taxonomy:
    """Read a file (a Path) or a text (a str), UTF-8 with or without a byte order mark.

    levels: ``leaf;level1;...;*``, also with commas or tabs, also just a list of leaves. edges:
    ``parent,child``; ``,label`` names the root. auto: edges if the first line has two columns
    separated by a comma, levels otherwise. A header has known words, or is the only line that does
    not end in ``*``. inner_values: inner nodes are values, too. Raises TaxonomyError with every
    problem by line, ConfigError if the file cannot be read.
    """
    text = (_read(source, name) if isinstance(source, Path) else source).removeprefix(_BOM)
    delimiter, is_edges = _shape_of(text, form)
    rows, lines = _records(text, delimiter, name=name)
    head = [label.strip().lower() for label in rows[0]] if rows else []
    if is_edges:
        if head in (_HEADER, _HEADER[::-1]):
            rows, lines = [row[:: 1 if head == _HEADER else -1] for row in rows[1:]], lines[1:]
        try:
            return from_edges(name, rows, lines=lines, inner_values=inner_values)
        except TaxonomyError as error:
            if form == "edges" or head in (_HEADER, _HEADER[::-1]):
                raise
            levels = command("dbanon taxonomy import", name, options="FILE.csv --form levels")
            hint = f"if a line is a value and its group, not a parent and its child: {levels}"
            raise TaxonomyError(str(error), hint=hint) from None
    if _is_header(rows, head):
        rows, lines = rows[1:], lines[1:]
    return from_levels(name, rows, lines=lines, inner_values=inner_values)


def write_csv(taxonomy: Taxonomy) -> str:
    """Write levels if all leaves have the same depth, otherwise edges; both can be read back."""
    parent = taxonomy.parent.tolist()
    quoted = [_quote(label) for label in taxonomy.labels]
    if len(set(taxonomy.depth[taxonomy.leaves].tolist())) > 1:
        edges = [f"{quoted[up]},{quoted[node]}" for node, up in enumerate(parent) if up >= 0]
        return "\n".join([",".join(_HEADER), *edges, ""])
    lines = []
    for leaf in taxonomy.leaves.tolist():
        path = [quoted[leaf]]
        node = leaf
        while (node := parent[node]) >= 0:
            path.append(quoted[node])
        lines.append(";".join(path))
    return "\n".join([*lines, ""])


class NodeRow(NamedTuple):
    """A node as it is stored; ``parent_id`` is None for the root."""

    node_id: int
    label: str
    parent_id: int | None
    depth: int
    leaf_lo: int
    leaf_hi: int


def rows(taxonomy: Taxonomy) -> list[NodeRow]:
    """Return the nodes in preorder."""
    arrays = (taxonomy.parent, taxonomy.depth, taxonomy.leaf_lo, taxonomy.leaf_hi)
    columns = zip(taxonomy.labels, *(array.tolist() for array in arrays), strict=True)
    return [
        NodeRow(node, label, None if up < 0 else up, depth, lo, hi)
        for node, (label, up, depth, lo, hi) in enumerate(columns)
    ]


def from_rows(name: str, stored: Iterable[Sequence[object]], *, version: int) -> Taxonomy:
    """Rebuild a taxonomy from its stored rows, in any order; raises TaxonomyError if damaged.

    It is built again from labels and parents, and compared with the other columns. O(nodes).
    """
    problems = Problems(name, unit="node")
    nodes = sorted(_typed(stored, problems), key=lambda node: node.node_id)
    ordered = all(
        node.node_id == number
        and (node.parent_id is None if number == 0 else node.parent_id in range(number))
        for number, node in enumerate(nodes)
    )
    if not ordered or not nodes:
        problems.add(0, "the stored nodes are not numbered as one tree from 0 on")
    problems.raise_if_any()
    tree = Nodes()
    for node in nodes:
        tree.add(node.label, -1 if node.parent_id is None else node.parent_id, node.node_id)
    taxonomy = assemble(tree, problems, version=version)
    for stored_node, node in zip(nodes, rows(taxonomy), strict=True):
        if stored_node != node:
            problems.add(node.node_id, "stored depth, leaves or order contradict the tree")
    problems.raise_if_any()
    return taxonomy


def render_tree(taxonomy: Taxonomy, *, max_leaves: int = 60) -> list[str]:
    """Draw the tree, one line per node, inner nodes with their number of leaves.

    Stops after ``max_leaves``, and prints how many remain. Escapes terminal control characters, but
    no markup.
    """
    lines: list[str] = []
    indents = [""] * len(taxonomy.labels)
    parent, leaf_hi = taxonomy.parent.tolist(), taxonomy.leaf_hi.tolist()
    inner = set(parent)
    shown = 0
    for node, label in enumerate(taxonomy.labels):
        up = parent[node]
        # Only a last child reaches the last leaf of its parent.
        last = up >= 0 and leaf_hi[node] == leaf_hi[up]
        branch = "" if up < 0 else indents[up] + ("└── " if last else "├── ")
        indents[node] = "" if up < 0 else indents[up] + ("    " if last else "│   ")
        if node not in inner and shown == max_leaves:
            lines.append(f"… {taxonomy.n_leaves - shown} more leaves")
            break
        size = leaf_hi[node] - int(taxonomy.leaf_lo[node]) + 1
        seen = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in label)
        lines.append(branch + seen + (f" ({size})" if node in inner else ""))
        shown += node not in inner
    return lines


def _read(path: Path, name: str) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        hint = command("dbanon taxonomy import", name, options="FILE.csv")
        raise ConfigError(unread(path, error), hint=hint) from error
    except UnicodeDecodeError as error:
        raise TaxonomyError(unread(path, error), hint=converted(path, error)) from None


def _shape_of(text: str, form: str) -> tuple[str, bool]:
    """Return the delimiter, and True for edges."""
    if form == "edges":
        return _EDGES, True
    for delimiter in (_LEVELS, "\t", _EDGES):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            first = next(reader, [])
            if form == "levels" and any(row and len(row) != len(first) for row in reader):
                continue
        except csv.Error:  # reported with its line later
            return delimiter, delimiter == _EDGES and form != "levels"
        if len(first) > 1:
            edges = delimiter == _EDGES and len(first) == len(_HEADER)
            return delimiter, edges and form != "levels"
    return _LEVELS, False


def _is_header(rows: list[list[str]], head: list[str]) -> bool:
    if len(rows) < 2 or len(head) < 2:  # noqa: PLR2004 - a list of values has no columns to name
        return False
    if all(_NAMES.fullmatch(label) for label in head):
        return True
    return rows[0][-1] != ROOT_LABEL and all(row[-1] == ROOT_LABEL for row in rows[1:])


def _records(text: str, delimiter: str, *, name: str) -> tuple[list[list[str]], list[int]]:
    """Return the non-blank rows with their line numbers; raises TaxonomyError beyond the limit."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found, lines, begin, labels = [], [], 1, 0
    try:
        for row in reader:
            if row:
                found.append(row)
                lines.append(begin)
            begin = reader.line_num + 1
            labels += len(row)
            if labels > MAX_LABELS:
                raise TaxonomyError(
                    f"taxonomy {name!r} has more than {MAX_LABELS:,} labels, which is the limit",
                    hint="leave out levels, or cut the leaves off to a coarser column",
                )
    except csv.Error as error:
        msg = f"taxonomy {name!r}, line {begin}: {error}"
        raise TaxonomyError(msg, hint="close the quotes, and double those inside") from None
    return found, lines


def _quote(label: str) -> str:
    plain = not any(c in label for c in '";,\t\r\n') and not label.startswith(_BOM)
    return label if plain else '"' + label.replace('"', '""') + '"'


def _typed(stored: Iterable[Sequence[object]], problems: Problems) -> Iterator[NodeRow]:
    """Yield the rows with the types of a NodeRow and a valid label."""
    for number, row in enumerate(stored):
        match row:
            case (
                int() as node,
                str() as label,
                int() | None as up,
                int() as depth,
                int() as lo,
                int() as hi,
            ) if not check_labels_are_text([label]):
                yield NodeRow(node, label, up, depth, lo, hi)
            case _:
                problems.add(number, "the stored row is damaged")


T = TypeVar("T")
Value = str | int | Decimal | date | None

_MAX_EXPONENT = 400  # float8 ends at 1e308
_MAX_LENGTH = 400
# Wide enough that no operation on numbers within those limits rounds.
_EXACT = Context(prec=2000, traps=[InvalidOperation])


def derive_flat(name: str, values: Iterable[Value]) -> Taxonomy:
    """Build a tree of the root and the values, in the given order."""
    return _finish(name, [[text] for text in _texts(values)])


def derive_intervals(
    name: str, values: Iterable[Value], *, widths: Sequence[str | int | float | Decimal]
) -> Taxonomy:
    """Build a tree of half-open intervals ``[lo, hi)``, one level for each width.

    An interval begins at a multiple of its width. Each width is a multiple of the previous one, so
    that intervals nest. For a domain that is wider than the data pass ``range(lo, hi)``.
    """
    problems = Problems(name)
    steps = _steps(widths, problems)
    numbers = _parse_all(
        _texts(values), _number, what="finite numbers of reasonable size", problems=problems
    )
    problems.raise_if_any()
    ordered = sorted(numbers.items(), key=lambda item: (item[1], item[0]))
    return _finish(
        name, [[text, *(_interval(number, step) for step in steps)] for text, number in ordered]
    )


def derive_dates(name: str, values: Iterable[Value]) -> Taxonomy:
    """Build a tree of days, months, quarters, years and decades."""
    problems = Problems(name)
    days = _parse_all(_texts(values), _day, what="days as YYYY-MM-DD", problems=problems)
    problems.raise_if_any()
    return _finish(name, [[text, *_periods(days[text])] for text in sorted(days)])


def derive_prefix(name: str, values: Iterable[Value]) -> Taxonomy:
    """Mask codes of one length from the right: 94305, 9430*, 943**, 94***, 9****."""
    texts = sorted(_texts(values))
    lengths = Counter(len(text) for text in texts)
    if len(lengths) > 1:
        found = ", ".join(f"{count} of {length}" for length, count in sorted(lengths.items()))
        problems = Problems(name)
        problems.add(0, f"prefixes need values of one length, found {found} characters")
        problems.raise_if_any()
    width = max(lengths, default=0)
    kept = range(width - 1, 0, -1)
    return _finish(name, [[t, *(t[:n] + "*" * (width - n) for n in kept)] for t in texts])


def _texts(values: Iterable[Value]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value is not None))


def _parse_all(
    texts: list[str], parse: Callable[[str], T | None], *, what: str, problems: Problems
) -> dict[str, T]:
    parsed = {text: parse(text) for text in texts}
    wrong = sum(value is None for value in parsed.values())
    if wrong:
        problems.add(0, f"{wrong} of {len(texts)} values are not {what}")
    return {text: value for text, value in parsed.items() if value is not None}


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or len(text) > _MAX_LENGTH:
        return None
    return number if abs(number.adjusted()) <= _MAX_EXPONENT else None


def _steps(widths: Sequence[str | int | float | Decimal], problems: Problems) -> list[Decimal]:
    parsed = [_number(str(width)) for width in widths]
    steps = [step for step in parsed if step is not None and step > 0]
    if not steps or len(steps) < len(parsed):
        problems.add(0, "widths are positive numbers, at least one")
    for narrow, wide in pairwise(steps):
        if wide <= narrow or _EXACT.remainder(wide, narrow):
            problems.add(0, f"width {wide} is not a multiple of width {narrow}")
    return steps


def _interval(number: Decimal, step: Decimal) -> str:
    rest = _EXACT.remainder(number, step)
    low = _EXACT.subtract(number, rest if rest >= 0 else _EXACT.add(rest, step))
    return f"[{_plain(low)}, {_plain(_EXACT.add(low, step))})"


def _plain(number: Decimal) -> str:
    return format(_EXACT.normalize(number) if number else Decimal(0), "f")


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    # Other spellings of ISO 8601 are not what PostgreSQL prints.
    return day if str(day) == text else None


def _periods(day: date) -> tuple[str, str, str, str]:
    year, decade = f"{day.year:04}", day.year // 10 * 10
    return (
        f"{year}-{day.month:02}",
        f"{year}-Q{(day.month + 2) // 3}",
        year,
        f"{decade:04}-{decade + 9:04}",
    )


def _finish(name: str, paths: list[list[str]]) -> Taxonomy:
    inner = {ROOT_LABEL}.union(*(path[1:] for path in paths))
    clashes = sum(path[0] in inner for path in paths)
    if clashes:
        problems = Problems(name)
        problems.add(0, f"{clashes} values read like the label of an inner node")
        problems.raise_if_any()
    return from_levels(name, ([*path, ROOT_LABEL] for path in paths))


def from_ranges(name: str, ranges: Iterable[Sequence[str]]) -> Taxonomy:
    """Build a tree of codes of a letter and two digits: (first, last, label) of each branch."""
    codes = [f"{letter}{number:02d}" for letter in ascii_uppercase for number in range(100)]
    rows = [
        (code, f"{label} ({first}-{last})")
        for first, last, label in ranges
        for code in codes[codes.index(first) : codes.index(last) + 1]
    ]
    return from_levels(name, rows)


MAX_HEIGHT = 255  # a lowest common ancestor is found in O(height)
_MAX_SHOWN = 100
_ROOT = -1
_ALL = "{} (all)"  # label of a node above a value of the same label


@dataclass(slots=True)
class Problems:
    """The problems of one taxonomy by line (0: all), without labels, which may be values."""

    name: str
    unit: str = "line"
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Record one problem."""
        self.found.append((line, text))

    def raise_if_any(self) -> None:
        """Raise one TaxonomyError that lists them in the order of their lines."""
        if not self.found:
            return
        found = sorted(self.found)
        count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        lines = [f"taxonomy {self.name!r} has {count}:"]
        lines += [
            f"  {self.unit} {line}: {text}" if line else f"  {text}"
            for line, text in found[:_MAX_SHOWN]
        ]
        if len(found) > _MAX_SHOWN:
            lines.append(f"  and {len(found) - _MAX_SHOWN} more")
        load = command("dbanon taxonomy import", self.name, options="FILE.csv")
        raise TaxonomyError("\n".join(lines), hint=f"correct the file, then: {load}")


@dataclass(slots=True)
class Nodes:
    """Nodes of one tree, siblings in order, with the line of each; the root has ``parent`` -1."""

    labels: list[str] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)

    def add(self, label: str, parent: int, line: int) -> int:
        """Append a node and return its index."""
        self.labels.append(label)
        self.parent.append(parent)
        self.line.append(line)
        return len(self.labels) - 1


def from_levels(
    name: str,
    rows: Iterable[Sequence[str]],
    *,
    lines: Sequence[int] | None = None,
    inner_values: bool = False,
) -> Taxonomy:
    """Build a tree from one row per leaf: the leaf, then its ancestors up to the root.

    A root ``*`` is added if the last labels differ. A label may recur only for the same set of
    leaves, as in ``Asia;Asia;*``, which equalizes the depth of leaves. If it covers more leaves
    above than below in a row, as New York, city and state, the upper one becomes ``New York
    (all)``. inner_values: every label below the root is a value, too. lines: line numbers of the
    rows, by default 1, 2, ... O(cells).
    """
    records = list(rows)
    problems = Problems(name)
    numbers = lines if lines is not None else range(1, len(records) + 1)
    kept = _rows_of_one_length(records, numbers, problems)
    columns = list(zip(*(row for _, row in kept), strict=True))
    if not columns:
        problems.add(0, "there is no leaf")
        problems.raise_if_any()
    if len(set(columns[-1])) > 1:
        columns.append((ROOT_LABEL,) * len(kept))
    numbers = [line for line, _ in kept]
    if inner_values:
        columns, numbers = _with_inner_values(columns, numbers)
    nodes = _nodes_of_levels(_distinguished(columns), numbers, problems)
    return assemble(nodes, problems)


def from_edges(
    name: str,
    edges: Iterable[Sequence[str]],
    *,
    lines: Sequence[int] | None = None,
    inner_values: bool = False,
) -> Taxonomy:
    """Build a tree from pairs of a parent and a child; ``("", label)`` names the root.

    A label that is its own child and also has another parent is a value with descendants: the upper
    node becomes ``E11 (all)``. inner_values: so is every label below the root. lines: line numbers
    of the edges, by default 1, 2, ... O(edges).
    """
    records = list(edges)
    problems = Problems(name)
    numbers: Sequence[int] = lines if lines is not None else range(1, len(records) + 1)
    records, numbers = _own_children(records, numbers, inner_values=inner_values)
    nodes = _nodes_of_edges(records, numbers, problems)
    _check_roots(nodes, problems)
    _check_cycles(nodes, problems)
    problems.raise_if_any()
    return assemble(nodes, problems)


def assemble(nodes: Nodes, problems: Problems, *, version: int = 0) -> Taxonomy:
    """Build the tree with nodes in depth-first preorder; raises all ``problems``. O(nodes)."""
    taxonomy, order = in_preorder(nodes, problems.name, version=version)
    _check_labels([nodes.line[node] for node in order], taxonomy, problems)
    _check_shape(taxonomy, problems)
    problems.raise_if_any()
    return taxonomy


def check_labels_are_text(labels: Iterable[str]) -> dict[str, str]:
    """Return the problem of each label that cannot be stored, by label."""
    odd: dict[str, str] = {}
    for label in set(labels):
        if not label:
            odd[label] = "a label is empty"
        elif _UNSTORABLE.search(label):
            odd[label] = "a label holds a character that PostgreSQL cannot store"
    return odd


def _rows_of_one_length(
    records: list[Sequence[str]], numbers: Sequence[int], problems: Problems
) -> list[tuple[int, Sequence[str]]]:
    """Return the valid rows with their line numbers."""
    odd = check_labels_are_text(chain.from_iterable(records))
    width = len(records[0]) if records else 0
    kept = []
    for line, row in zip(numbers, records, strict=True):
        if len(row) != width:
            problems.add(line, f"{len(row)} columns, where line {numbers[0]} has {width}")
        elif odd and any(label in odd for label in row):
            for column, label in enumerate(row, start=1):
                if label in odd:
                    problems.add(line, f"column {column}: {odd[label]}")
        else:
            kept.append((line, row))
    return kept


def _nodes_of_levels(columns: list[tuple[str, ...]], lines: list[int], problems: Problems) -> Nodes:
    """Create a node for each label of each level, from the root; the first parent wins."""
    nodes = Nodes()
    parents = [_ROOT] * len(lines)
    for level in range(len(columns) - 1, -1, -1):
        here: dict[str, int] = {}
        row_nodes = []
        for line, label, above in zip(lines, columns[level], parents, strict=True):
            node = here.get(label)
            if node is None:
                node = here[label] = nodes.add(label, above, line)
            elif level == 0:
                problems.add(line, f"the leaf of line {nodes.line[node]} again")
            elif nodes.parent[node] != above:
                first = nodes.line[node]
                problems.add(line, f"column {level + 1} has another parent than on line {first}")
            row_nodes.append(node)
        parents = row_nodes
    return nodes


def _distinguished(columns: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Mark labels that cover more rows than the same label further below in the row."""
    counts = [Counter(column) for column in columns]
    for level in range(1, len(columns)):
        wider = {
            label
            for row in zip(*columns[: level + 1], strict=True)
            for below, label in enumerate(row[:-1])
            if label == row[-1] and counts[below][label] < counts[level][label]
        }
        taken = {label for count in counts for label in count}
        if wider and not taken & {_ALL.format(label) for label in wider}:
            columns[level] = tuple(
                _ALL.format(label) if label in wider else label for label in columns[level]
            )
            counts[level] = Counter(columns[level])
    return columns


def _with_inner_values(
    columns: list[tuple[str, ...]], lines: list[int]
) -> tuple[list[tuple[str, ...]], list[int]]:
    """Add a row for each label between leaves and root that is not a leaf."""
    rows, numbers = list(zip(*columns, strict=True)), [*lines]
    known = set(columns[0])
    for line, row in zip(lines, [*rows], strict=True):
        for level, label in enumerate(row[1:-1], start=1):
            if label not in known:
                known.add(label)
                rows.append((label,) * level + row[level:])
                numbers.append(line)
    return list(zip(*rows, strict=True)), numbers


def _own_children(
    edges: list[Sequence[str]], lines: Sequence[int], *, inner_values: bool
) -> tuple[list[Sequence[str]], Sequence[int]]:
    """Add a node above each value that is its own child, and move its descendants there."""
    pairs = [edge for edge in edges if len(edge) == 2]  # noqa: PLR2004 - others are reported later
    placed = {child for parent, child in pairs if parent and parent != child}
    own = {child for parent, child in pairs if parent == child} & placed
    if inner_values:
        own |= {parent for parent, _ in pairs} & placed
    labels = {label for edge in pairs for label in edge}
    own = {label for label in own if label and _ALL.format(label) not in labels}
    found: list[Sequence[str]] = []
    numbers: list[int] = []
    for edge, line in zip(edges, lines, strict=True):
        if len(edge) == 2 and edge[0] == edge[1] and edge[0] in own:  # noqa: PLR2004 - as above
            continue
        found.append([_ALL.format(label) if label in own else label for label in edge])
        numbers.append(line)
        if len(edge) == 2 and edge[1] in own:  # noqa: PLR2004 - as above
            found.append([_ALL.format(edge[1]), edge[1]])
            numbers.append(line)
    return found, numbers


def _nodes_of_edges(
    records: list[Sequence[str]], numbers: Sequence[int], problems: Problems
) -> Nodes:
    """Create a node for each label; the first parent of a child wins."""
    nodes = Nodes()
    ids: dict[str, int] = {}
    placed: dict[int, int] = {}
    odd = check_labels_are_text(chain.from_iterable(records))
    for line, edge in zip(numbers, records, strict=True):
        if len(edge) != 2:  # noqa: PLR2004 - a parent and a child
            problems.add(line, f"{len(edge)} columns, where parent and child are expected")
            continue
        wrong = odd.get(edge[1]) or (edge[0] and odd.get(edge[0]))
        if wrong:
            problems.add(line, wrong)
            continue
        for label in edge:
            if label and label not in ids:
                ids[label] = nodes.add(label, _ROOT, line)
        child = ids[edge[1]]
        if child in placed:
            problems.add(line, f"the child already has its place, on line {placed[child]}")
            continue
        placed[child] = line
        nodes.line[child] = line
        nodes.parent[child] = ids[edge[0]] if edge[0] else _ROOT
    return nodes


def _check_roots(nodes: Nodes, problems: Problems) -> None:
    roots = [node for node, above in enumerate(nodes.parent) if above == _ROOT]
    if not roots:
        problems.add(0, "there is no root" + (": every node has a parent" if nodes.labels else ""))
    for extra in roots[1:]:
        problems.add(
            nodes.line[extra], f"a second root; line {nodes.line[roots[0]]} has one already"
        )


def _check_cycles(nodes: Nodes, problems: Problems) -> None:
    """Report each cycle once, at its first line; visits every node once."""
    walk_of = [-1] * len(nodes.parent)
    for start in range(len(nodes.parent)):
        node = start
        while node != _ROOT and walk_of[node] < 0:
            walk_of[node] = start
            node = nodes.parent[node]
        if node == _ROOT or walk_of[node] != start:
            continue
        cycle = [node]
        while nodes.parent[cycle[-1]] != node:
            cycle.append(nodes.parent[cycle[-1]])
        first = min(nodes.line[member] for member in cycle)
        problems.add(first, f"part of a cycle of length {len(cycle)}")


def in_preorder(nodes: Nodes, name: str, *, version: int = 0) -> tuple[Taxonomy, list[int]]:
    """Return the tree with nodes in depth-first preorder, and the index that each had. O(nodes)."""
    children: list[list[int]] = [[] for _ in nodes.parent]
    for node, up in enumerate(nodes.parent):
        if up != _ROOT:
            children[up].append(node)
    order: list[int] = []
    parent: list[int] = []
    stack = [(nodes.parent.index(_ROOT), _ROOT)]
    while stack:
        node, up = stack.pop()
        number = len(order)
        order.append(node)
        parent.append(up)
        stack.extend((child, number) for child in reversed(children[node]))
    labels = [nodes.labels[node] for node in order]
    leaves = [number for number, node in enumerate(order) if not children[node]]
    taxonomy = Taxonomy.of_nodes(name, labels, parent=parent, leaves=leaves, version=version)
    return taxonomy, order


def _check_labels(lines: list[int], taxonomy: Taxonomy, problems: Problems) -> None:
    """Report labels of nodes with different leaves, which are ambiguous in a release."""
    spans = list(zip(taxonomy.leaf_lo.tolist(), taxonomy.leaf_hi.tolist(), strict=True))
    first_node: dict[str, int] = {}
    for node, label in enumerate(taxonomy.labels):
        twin = first_node.setdefault(label, node)
        if spans[twin] != spans[node]:
            early, late = sorted((lines[twin], lines[node]))
            problems.add(late, f"a label that names another node on {problems.unit} {early}")


def _check_shape(taxonomy: Taxonomy, problems: Problems) -> None:
    if not taxonomy.name or "\x00" in taxonomy.name:
        problems.add(0, "the name of a taxonomy is not empty and holds no NUL character")
    if taxonomy.height > MAX_HEIGHT:
        problems.add(0, f"the tree is {taxonomy.height} levels high; the limit is {MAX_HEIGHT}")
    depths = Counter(taxonomy.depth[taxonomy.leaves].tolist())
    # Only the levels form supports recurring labels, and it needs leaves of equal depth.
    recurs = len(set(taxonomy.labels)) < len(taxonomy.labels)
    if len(depths) > 1 and recurs:
        found = ", ".join(f"{count} at depth {depth}" for depth, count in sorted(depths.items()))
        problems.add(0, f"all leaves must have one depth, found {found}")
