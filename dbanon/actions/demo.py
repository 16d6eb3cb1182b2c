"""The demonstration: real patients or a clinic of linked tables, in one call."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dbanon import resources
from dbanon.actions.init import init
from dbanon.actions.policy import set_policy
from dbanon.actions.publish import publish_dataset_request, publish_request
from dbanon.actions.refresh import refresh
from dbanon.actions.releases.check import check
from dbanon.actions.taxonomy import import_taxonomy, list_taxonomies
from dbanon.db import demo_tables, identity
from dbanon.db.metadata import ledger
from dbanon.db.metadata.migrate import current_session
from dbanon.db.session import connect
from dbanon.domain.errors import ConfigError
from dbanon.domain.outcomes import Operation, Stages
from dbanon.domain.table import TableName
from dbanon.request import Request
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.domain.release import CheckReport, Release


_ASKED = Request(k=5, l=3, effort="fast")


@dataclass(frozen=True, slots=True)
class Sample:
    """Tables that ship with the package; ``taxonomies`` maps a name to its CSV file.

    ``delimiter`` is None for tables that SQL generates. ``tables`` are published together, that of
    the persons first.
    """

    name: str
    origin: str
    queries: tuple[str, ...]
    delimiter: str | None = None
    taxonomies: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[TableName, ...]:
        """Return the tables."""
        return tuple(TableName("public", name) for name in self.tables or (self.name,))


_ADULT_TREES = (
    "education",
    "marital-status",
    "native-country",
    "occupation",
    "race",
    "salary-class",
    "sex",
    "workclass",
)

DATASETS: Mapping[str, Sample] = {
    "patients": Sample(
        name="patients",
        origin="7,874 residents of Olmsted County, Minnesota (Kyle et al., NEJM 2006)",
        delimiter=",",
        taxonomies={"patients_sex": "patients_taxonomy_sex.csv"},
        queries=(
            """SELECT chapter, count(*) FROM anon.patients
 WHERE age && int4range(80, 90) GROUP BY chapter ORDER BY count(*) DESC""",
            """SELECT sex, death, count(*) FROM anon.patients
 GROUP BY sex, death ORDER BY sex, death""",
            """SELECT age,
       round(100.0 * count(*) FILTER (WHERE death = 'dead') / count(*)) AS dead
  FROM anon.patients GROUP BY age ORDER BY age""",
        ),
    ),
    "adult": Sample(
        name="adult",
        origin="30,162 persons of the 1994 US census (Becker & Kohavi, UCI, 1996)",
        delimiter=";",
        taxonomies={f"adult_{tree}": f"adult_hierarchy_{tree}.csv" for tree in _ADULT_TREES},
        queries=(
            """SELECT occupation, count(*) FROM anon.adult
 WHERE age && int4range(30, 40) GROUP BY occupation ORDER BY count(*) DESC""",
            """SELECT education, "salary-class", count(*) FROM anon.adult
 GROUP BY 1, 2 ORDER BY count(*) DESC LIMIT 10""",
            """SELECT "native-country", count(*) FROM anon.adult GROUP BY 1 ORDER BY 2 DESC""",
        ),
    ),
    "clinic": Sample(
        name="clinic",
        origin="2,000 invented persons, their visits, and what was found at these",
        tables=("clinic_persons", "clinic_encounters", "clinic_conditions"),
        queries=(
            """SELECT condition, sex, count(*) FROM anon.clinic_conditions
 GROUP BY 1, 2 ORDER BY 1, 2""",
            """SELECT insurance, count(*) FROM anon.clinic_persons
 WHERE birth_date && daterange('1940-01-01', '1960-01-01') GROUP BY 1""",
            """SELECT sex, count(*), round(avg(cost)) AS cost FROM anon.clinic_encounters
 GROUP BY sex""",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Published:
    """One release of the demonstration, its proof, and some rows of it and of its source."""

    source_columns: tuple[str, ...]
    source_rows: tuple[tuple[str | None, ...], ...]
    release: Release
    checks: CheckReport
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """The results of the demonstration, with queries to run next."""

    sample: Sample
    published: tuple[Published, ...]


def demo(
    dataset: str = "patients", *, settings: Settings | None = None, stages: Stages | None = None
) -> Demonstration:
    """Load tables that ship with dbanon, publish them with k = 5 and l = 3, and prove it.

    Idempotent. Raises ConfigError if another table of that name exists.
    """
    chosen, settings = _chosen(dataset), settings or Settings.load()
    stages = stages or Stages()
    with stages("install"):
        init(settings)
    with stages("load"):
        for table in chosen.names:
            _load(chosen, table, settings)
            _define(chosen, table, settings)
    releases = _refreshed(chosen, settings, stages) or _published(chosen, settings, stages)
    return Demonstration(chosen, tuple(_shown(release, settings, stages) for release in releases))


def load(dataset: str, *, settings: Settings) -> None:
    """Load tables that ship with dbanon and their taxonomies, without a policy or a release."""
    chosen = _chosen(dataset)
    init(settings)
    for table in chosen.names:
        _load(chosen, table, settings)
    _import(chosen, settings)


def _chosen(dataset: str) -> Sample:
    if dataset not in DATASETS:
        raise ConfigError(f"there is no data set {dataset}", hint=f"one of {', '.join(DATASETS)}")
    return DATASETS[dataset]


def _published(chosen: Sample, settings: Settings, stages: Stages) -> list[Release]:
    request = replace(_ASKED, settings=settings, stages=stages)
    if chosen.tables:
        file = resources.data(f"{chosen.name}/{chosen.name}.toml")
        return publish_dataset_request(file, request)
    (table,) = chosen.names
    return [publish_request(table, request)]


def _refreshed(chosen: Sample, settings: Settings, stages: Stages) -> list[Release]:
    """Refresh the releases if all tables are served: a new search might return other classes."""
    views = [_ASKED.view(table) for table in chosen.names]
    with current_session(settings) as session:
        served = [ledger.served_release(session, view) for view in views]
    if not all(served):
        return []
    found = refresh(chosen.names[0], if_changed=True, settings=settings, stages=stages)
    releases = {one.relation: one.release for one in found}
    return [releases[view] for view in views if view in releases]


def _shown(release: Release, settings: Settings, stages: Stages) -> Published:
    with stages("prove again"):
        report = check(release.relation, settings=settings)
    with connect(settings) as session, session.transaction(read_only=True):
        relations = release.table, release.relation
        before, after = (demo_tables.first_rows(session, one, limit=8) for one in relations)
        identity.require_admitted(session)
    return Published(*before, release, report, *after)


def _load(sample: Sample, table: TableName, settings: Settings) -> None:
    operation = Operation(str(table), "loaded", "dbanon demo")
    with connect(settings, writes=True) as session, session.transaction(operation=operation):
        if demo_tables.is_loaded(session, table):
            return
        if sample.delimiter is None:
            demo_tables.make(session, table)
            return
        with gzip.open(resources.data(f"{sample.name}.csv.gz")) as file:
            demo_tables.load(session, table, file.read(), delimiter=sample.delimiter)


def _import(sample: Sample, settings: Settings) -> None:
    known = {row["name"] for row in list_taxonomies(settings=settings)}
    for name, file in sample.taxonomies.items():
        if name not in known:
            import_taxonomy(name, resources.data(file), settings=settings)


def _define(sample: Sample, table: TableName, settings: Settings) -> None:
    _import(sample, settings)
    file = f"{sample.name}/{table.name}.toml" if sample.tables else f"{table.name}.toml"
    set_policy(table, resources.data(file), settings=settings)
