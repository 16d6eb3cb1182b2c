"""Read tables of public schemas, of which each column has the role that a data steward gives it.

A file of ``labels`` is a schema. A line that is not indented is a table: its name, its rows, its
key, and the column of the persons who have several rows. An indented line is a column: name, type,
distinct values (and filled rows after a slash), role, generator, and the table it refers to. The
role is followed by the kind of values if the type does not give it, such as ``quasi:category`` for
a code that is an integer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from data.schemas import people

from dbanon.domain.table import (
    ColumnInfo,
    ColumnKind,
    ColumnStats,
    ForeignKey,
    TableInfo,
    TableName,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HELD_OUT = frozenset({"attrition", "mimic", "moodle", "northwind", "openemr", "openmrs"})
"""Schemas of which nobody read the faults until they were counted once: 381 of 473 were right."""
KINDS = {
    "int": ("int4", ColumnKind.INTEGER),
    "num": ("numeric", ColumnKind.DECIMAL),
    "float": ("float8", ColumnKind.FLOAT),
    "text": ("text", ColumnKind.CATEGORY),
    "uuid": ("uuid", ColumnKind.CATEGORY),
    "date": ("date", ColumnKind.DATE),
    "time": ("timestamptz", ColumnKind.TIMESTAMPTZ),
    "bool": ("bool", ColumnKind.BOOLEAN),
    "enum": ("mood", ColumnKind.ORDINAL),
    "array": ("_text", ColumnKind.OTHER),
    "bytes": ("bytea", ColumnKind.OTHER),
}
_COLUMN = re.compile(
    r" +(?P<name>\w+) (?P<type>\w+) (?P<distinct>\d+)(?:/(?P<filled>\d+))?"
    r" (?P<role>\w+)(?::(?P<kind>\w+))?(?: (?!->)(?P<generator>.+?))?(?: -> (?P<refers>\w+))?"
)
_ROWS, _SPARSE = 300, 0.1


@dataclass(frozen=True, slots=True)
class Labelled:
    """A column with its counts and the role that a steward gives it; kind: of its values."""

    info: ColumnInfo
    distinct: int
    filled: int
    role: str
    kind: str
    generator: str
    refers: str | None


@dataclass(frozen=True, slots=True)
class Labels:
    """A table of a schema; ``subject`` is the column of persons with several rows, if any."""

    schema: str
    name: str
    n_rows: int
    key: tuple[str, ...]
    subject: str | None
    columns: tuple[Labelled, ...]

    @property
    def info(self) -> TableInfo:
        columns = tuple(column.info for column in self.columns)
        return TableInfo(1, TableName(self.schema, self.name), "r", columns, self.key)

    @property
    def stats(self) -> dict[str, ColumnStats]:
        return {
            c.info.name: ColumnStats(self.n_rows, self.n_rows - c.filled, c.distinct)
            for c in self.columns
        }

    @property
    def foreign_keys(self) -> list[ForeignKey]:
        return [
            ForeignKey((c.info.name,), TableName(self.schema, c.refers))
            for c in self.columns
            if c.refers is not None
        ]

    def rows(self) -> dict[str, list[str | None]]:
        """Generate values of some rows, by column, the same whenever they are read."""
        return _rows(self)


@cache
def _rows(table: Labels) -> dict[str, list[str | None]]:
    n_rows = min(table.n_rows, _ROWS)
    return {c.info.name: _values(c, table, n_rows) for c in table.columns}


@cache
def read() -> dict[str, Labels]:
    """Read the tables of all schemas, by schema and name."""
    tables = {}
    for file in sorted((Path(__file__).parent / "labels").glob("*.txt")):
        for text in re.split(r"\n(?=\S)", file.read_text().strip()):
            header, *lines = text.splitlines()
            name, n_rows, key, *subject = header.split()
            columns = tuple(_column(line, int(n_rows)) for line in lines)
            tables[name] = Labels(
                *name.split("."), int(n_rows), tuple(key.split(",")), next(iter(subject), None),
                columns,
            )  # fmt: skip
    return tables


def _column(line: str, n_rows: int) -> Labelled:
    found = _COLUMN.fullmatch(line)
    if found is None:
        raise ValueError(line)
    base, kind = KINDS[found["type"]]
    own = "number" if kind.is_number else "date" if kind.is_moment else "category"
    return Labelled(
        ColumnInfo(found["name"], base, base, kind, nullable=found["filled"] is not None),
        int(found["distinct"]),
        int(found["filled"] or n_rows),
        found["role"],
        found["kind"] or own,
        found["generator"] or found["type"],
        found["refers"],
    )


def _values(column: Labelled, table: Labels, n_rows: int) -> list[str | None]:
    source = Random(f"{table.name}.{column.info.name}")  # noqa: S311 - no secrets
    name, _, rest = column.generator.partition("(")
    made: dict[int, str] = {}
    values: list[str | None] = []
    for _ in range(n_rows):
        is_sparse = column.filled < _SPARSE * table.n_rows  # of which filled rows are read
        is_past = len(values) >= column.filled  # a value of few rows is not repeated
        if is_past or (not is_sparse and source.random() > column.filled / table.n_rows):
            values.append(None)
            continue
        number = source.randrange(column.distinct)
        if column.distinct == column.filled:
            number = len(values) % column.filled
        if number not in made:
            one = Random(f"{column.generator}.{number}")  # noqa: S311 - no secrets
            draw = _Draw(one, number, rest.removesuffix(")"), column.distinct)
            made[number] = _GENERATORS[name](draw)
        values.append(made[number])
    return values


class _Draw(NamedTuple):
    """A value to generate: the source of chance, its number of so many, and the parameters."""

    source: Random
    number: int
    rest: str
    distinct: int


def _range(draw: _Draw) -> str:
    low, high = map(int, draw.rest.split(","))
    return str(low + draw.number * (high - low) // max(1, draw.distinct - 1))


def _pick(draw: _Draw) -> str:
    options = draw.rest.split("|")
    number = draw.number
    return options[number] if number < len(options) else f"{number % 97} {options[0]} {number}"


def _day(draw: _Draw) -> str:
    first, last = map(int, draw.rest.split(",")) if draw.rest else (1995, 2020)
    return str(people.day(draw.source, first, last))


def _time(draw: _Draw) -> str:
    day = date(1990, 1, 1) + timedelta(draw.number % 9000)
    return f"{day} {draw.number % 24:02}:{draw.number % 60:02}:11+00"


def _of(make: Callable[[Random], str]) -> Callable[[_Draw], str]:
    return lambda draw: make(draw.source)


def _mixed(pattern: str) -> Callable[[_Draw], str]:
    """Return a generator of a pattern: 9 is a digit, A a capital letter, x a hexadecimal digit."""
    alphabets = {"9": "0123456789", "A": "ABCDEFGHKLMNPRSTVWYZ", "x": "0123456789abcdef"}
    return _of(lambda s: "".join(s.choice(alphabets.get(c, c)) for c in pattern))


def _word(source: Random) -> str:
    return "".join(source.choice("bdfgklmnprst") + source.choice("aeiou") for _ in range(3))


def _first(source: Random) -> str:
    return source.choice([people.first_name(source), _word(source).title()])


def _last(source: Random) -> str:
    return source.choice([people.last_name(source), _word(source).title()])


def _sentence(source: Random) -> str:
    return " ".join(_word(source) for _ in range(source.randint(6, 30))).capitalize() + "."


def _iban(source: Random) -> str:
    account = "".join(source.choice("0123456789") for _ in range(18))
    return f"DE{98 - int(account + '131400') % 97:02}{account}"


def _card(source: Random) -> str:
    digits = [4, *(source.randrange(10) for _ in range(14))]
    total = sum(sum(divmod(d * 2, 10)) if i % 2 == 0 else d for i, d in enumerate(digits))
    return "".join(map(str, [*digits, -total % 10]))


def _loinc(source: Random) -> str:
    digits = [int(c) for c in str(source.randint(1000, 99999))]
    total = sum(sum(divmod(d * 2, 10)) if i % 2 == 0 else d for i, d in enumerate(digits[::-1]))
    return f"{''.join(map(str, digits))}-{-total % 10}"


_GENERATORS: dict[str, Callable[[_Draw], str]] = {
    "int": lambda d: str(d.number + 1),
    "num": lambda d: f"{d.number * 1.37 + 3:.2f}",
    "float": lambda d: f"{d.number * 0.731 + 2:.4f}",
    "text": lambda d: f"kind {d.number}",
    "enum": lambda d: f"kind {d.number}",
    "bool": lambda d: "ft"[d.number % 2],
    "array": lambda d: f"{{kind,{d.number}}}",
    "date": lambda d: str(date(1990, 1, 1) + timedelta(d.number)),
    "time": _time,
    "bytes": _mixed(r"\xxxxxxxxx"),
    "uuid": _mixed("xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx"),
    "reference": _mixed("Resource/xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx"),
    "range": _range,
    "codes": lambda d: str(d.source.randint(*map(int, d.rest.split(",")))),
    "pick": _pick,
    "day": _day,
    "hex": lambda d: "".join(d.source.choices("0123456789ABCDEF", k=int(d.rest))),
    "first": _of(_first),
    "last": _of(_last),
    "full": _of(lambda s: f"{_first(s)} {_last(s)}"),
    "email": _of(lambda s: f"{_first(s)}.{_last(s)}{s.randrange(999)}@example.org".lower()),
    "phone": _of(people.phone),
    "ssn": _of(people.ssn),
    "street": _of(lambda s: f"{s.randint(1, 999)} {_word(s).title()} Street"),
    "city": _of(lambda s: _word(s).title()),
    "zip": _mixed("99999"),
    "company": _of(lambda s: f"{_word(s).title()} {s.choice(['Ltd', 'Inc', 'GmbH'])}"),
    "occupation": _of(lambda s: f"{s.choice(['Senior', 'Chief'])} {_word(s)}"),
    "path": _of(lambda s: rf"Zip codes\{_word(s).title()}\{_word(s).title()}" + "\\"),
    "url": _of(lambda s: f"https://www.example.org/{_word(s)}/{s.randrange(99999)}"),
    "ip": _of(lambda s: ".".join(str(s.randint(1, 254)) for _ in range(4))),
    "mac": _mixed("xx:xx:xx:xx:xx:xx"),
    "sentence": _of(_sentence),
    "json": lambda d: f'{{"instanceid":"{d.number}","attempt":{d.number % 4}}}',
    "iban": _of(_iban),
    "card": _of(_card),
    "icd9": _of(lambda s: f"{s.randint(1, 999):03}" + s.choice(["", f".{s.randrange(99)}"])),
    "icd10": _of(lambda s: f"{s.choice('ABCDEFGIJKLMNR')}{s.randrange(99):02}.{s.randrange(9)}"),
    "loinc": _of(_loinc),
    "atc": _mixed("A09AA09"),
    "ndc": _mixed("99999-9999-99"),
    "snomed": _mixed("9999999006"),
}  # fmt: skip
