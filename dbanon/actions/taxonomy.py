"""Manage taxonomies (generalization hierarchies)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dbanon import resources
from dbanon.db import catalog, identity
from dbanon.db.metadata import store
from dbanon.db.metadata.migrate import current_session, require_current
from dbanon.db.session import Session, connect
from dbanon.domain.errors import ConfigError, TaxonomyError
from dbanon.domain.outcomes import Operation
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.formats import taxonomies
from dbanon.formats.document_reader import did_you_mean
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.domain.assignment import Taxonomy

Derivation = Literal["flat", "intervals", "dates", "prefix"]
DERIVATIONS: tuple[Derivation, ...] = ("flat", "intervals", "dates", "prefix")

_DIGITS = {"zip3": 3, "zip5": 5}

# More distinct values than this make no taxonomy that anyone would read.
MAX_LEAVES = 200_000


def import_taxonomy(
    name: str,
    source: str | Path,
    *,
    form: Literal["auto", "levels", "edges"] = "auto",
    inner_values: bool = False,
    settings: Settings | None = None,
) -> Taxonomy:
    """Read a CSV file and store it as the next version of the taxonomy ``name``.

    Rows are ``leaf;level 1;...;*`` (form levels) or ``parent,child`` (form edges). With
    ``inner_values``, inner nodes are values, too. Raises TaxonomyError with every problem by line
    number, ConfigError if the file cannot be read.
    """
    taxonomy = taxonomies.read_csv(Path(source), name=name, form=form, inner_values=inner_values)
    return _store(taxonomy, settings)


def import_text(name: str, text: str, *, settings: Settings | None = None) -> Taxonomy:
    """Store CSV text as ``import_taxonomy`` stores a file."""
    return _store(taxonomies.read_csv(text, name=name), settings)


BUILT_IN: Mapping[str, str] = {
    "country": "ISO 3166 alpha-2 codes, sub-region and region by UN M49",
    "country-alpha-3": "ISO 3166 alpha-3 codes, sub-region and region by UN M49",
    "us-state": "postal codes of US states, census division and census region",
    "icd-10": "three-character categories of ICD-10 and their chapters",
    "zip3": "the first three digits of US ZIP codes, masked from the right",
    "zip5": "US ZIP codes of five digits, masked from the right",
}
"""The taxonomies that come with dbanon, and what their leaves and levels are."""


def add_built_in(
    name: str, *, stored: str | None = None, settings: Settings | None = None
) -> Taxonomy:
    """Store a taxonomy that comes with dbanon, under its name or another; raises ConfigError."""
    if name not in BUILT_IN:
        raise ConfigError(
            f"no taxonomy {name} comes with dbanon{did_you_mean(name, BUILT_IN)}",
            hint="dbanon taxonomy builtin list",
        )
    return _store(load_built_in(name, stored=stored or name), settings)


def load_built_in(name: str, *, stored: str) -> Taxonomy:
    """Return a taxonomy that comes with dbanon."""
    if name in _DIGITS:
        digits = _DIGITS[name]
        codes = [f"{number:0{digits}d}" for number in range(10**digits)]
        return taxonomies.derive_prefix(stored, codes)
    if name == "icd-10":
        text = resources.data("taxonomies/icd-10-chapters.csv").read_text(encoding="utf-8")
        lines = text.splitlines()[1:]
        return taxonomies.from_ranges(stored, (line.split(";") for line in lines))
    return taxonomies.read_csv(resources.data(f"taxonomies/{name}.csv"), name=stored)


def derive_taxonomy(
    name: str,
    column: str,
    *,
    table: str | TableName,
    kind: Derivation,
    widths: Sequence[float] = (),
    settings: Settings | None = None,
) -> Taxonomy:
    """Derive a taxonomy from the values of a column, and store it as the next version of ``name``.

    ``kind`` is flat, intervals (of the given ``widths``, each a multiple of the previous one),
    dates (day, month, quarter, year, decade) or prefix (postcodes). Raises TaxonomyError.
    """
    with connect(settings or Settings.load(), writes=True) as session:
        with session.transaction(read_only=True):
            require_current(session)
            values = _values(session, TableName.parse(table), column)
        with session.transaction(operation=_operation(name, "stored")):
            return _add(session, _derive(name, values, kind=kind, widths=widths))


def _values(session: Session, table: TableName, column: str) -> list[str]:
    info = catalog.describe_source(session, table)
    values = catalog.distinct_values(session, info, column, limit=MAX_LEAVES + 1)
    identity.require_admitted(session)
    if len(values) > MAX_LEAVES:
        raise TaxonomyError(
            f"column {quote_identifier(column)} has more than {MAX_LEAVES:,} distinct values",
            hint="publish it with the recoding interval, or derive it from a coarser column",
        )
    return values


def _derive(
    name: str, values: Sequence[str], *, kind: Derivation, widths: Sequence[float]
) -> Taxonomy:
    if kind == "intervals":
        if not widths:
            raise ConfigError("intervals need at least one width", hint="--width 5 --width 10")
        return taxonomies.derive_intervals(name, values, widths=widths)
    if widths:
        raise ConfigError(f"a taxonomy of kind {kind} takes no width")
    derive = {
        "flat": taxonomies.derive_flat,
        "dates": taxonomies.derive_dates,
        "prefix": taxonomies.derive_prefix,
    }[kind]
    return derive(name, values)


def list_taxonomies(*, settings: Settings | None = None) -> list[dict[str, Any]]:
    """Return name, version, n_leaves, height and created_at of every version."""
    with current_session(settings or Settings.load()) as session:
        return store.list_taxonomies(session)


def load_taxonomy(name: str, *, settings: Settings | None = None) -> Taxonomy:
    """Return the newest version of a taxonomy; raises TaxonomyError if there is none."""
    with current_session(settings or Settings.load()) as session:
        found = store.newest_taxonomies(session, [name])
    if name not in found:
        raise TaxonomyError(f"there is no taxonomy {name}", hint="dbanon taxonomy list")
    return found[name]


def export_taxonomy(name: str, *, settings: Settings | None = None) -> str:
    """Return the newest version of a taxonomy as CSV for ``import_taxonomy``."""
    return taxonomies.write_csv(load_taxonomy(name, settings=settings))


def missing_values_sql(name: str, column: str, *, table: str | TableName) -> str:
    """Return the query of the column values that a taxonomy lacks; does not connect.

    dbanon itself never prints values: run it in psql, as a role that may see them.
    """
    return store.missing_values_query(name, table=TableName.parse(table), column=column)


def drop_taxonomy(name: str, *, settings: Settings | None = None) -> int:
    """Delete all versions of a taxonomy that no policy names; returns their number."""
    operation = _operation(name, "dropped")
    with current_session(settings or Settings.load(), operation=operation) as session:
        users = store.policies_naming(session, name)
        if users:
            raise TaxonomyError(
                f"taxonomy {name} is named by the policy of {', '.join(map(str, users))}",
                hint=command("dbanon policy show", users[0]),
            )
        dropped = store.drop_taxonomy(session, name)
    if not dropped:
        raise TaxonomyError(f"there is no taxonomy {name}", hint="dbanon taxonomy list")
    return dropped


def _store(taxonomy: Taxonomy, settings: Settings | None) -> Taxonomy:
    operation = _operation(taxonomy.name, "stored")
    with current_session(settings or Settings.load(), operation=operation) as session:
        return _add(session, taxonomy)


def _operation(name: str, done: str) -> Operation:
    return Operation(f"taxonomy {name}", done, "dbanon taxonomy list")


def _add(session: Session, taxonomy: Taxonomy) -> Taxonomy:
    return replace(taxonomy, version=store.add_taxonomy(session, taxonomy))
