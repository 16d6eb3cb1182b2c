"""The whole story on real data, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbanon import resources
from dbanon.actions.check import check
from dbanon.actions.init import init
from dbanon.actions.policy import set_policy
from dbanon.actions.publish import publish
from dbanon.actions.taxonomy import import_taxonomy, list_taxonomies
from dbanon.domain.deeds import Deed
from dbanon.domain.errors import ConfigError
from dbanon.domain.progress import Stages
from dbanon.domain.table import TableName
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.domain.checks import CheckReport
    from dbanon.domain.release import Release


@dataclass(frozen=True, slots=True)
class Dataset:
    """Real data that ships with the package; ``taxonomies`` maps a name to its CSV file."""

    name: str
    origin: str
    delimiter: str
    taxonomies: Mapping[str, str]
    queries: tuple[str, ...]


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

DATASETS: Mapping[str, Dataset] = {
    "patients": Dataset(
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
    "adult": Dataset(
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
}


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What the demonstration did: the release, its proof, some rows, and queries to run next."""

    dataset: Dataset
    source_columns: tuple[str, ...]
    source_rows: tuple[tuple[str | None, ...], ...]
    release: Release
    checks: CheckReport
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


def demo(
    dataset: str = "patients", *, settings: Settings | None = None, stages: Stages | None = None
) -> Demonstration:
    """Load a data set that ships with dbanon, publish it with k = 5 and l = 3, and prove it.

    Idempotent. Raises ConfigError when a table of that name exists and is not the demo's.
    """
    if dataset not in DATASETS:
        raise ConfigError(f"there is no data set {dataset}", hint=f"one of {', '.join(DATASETS)}")
    chosen = DATASETS[dataset]
    settings = settings or Settings.load()
    stages = stages or Stages()
    table = TableName("public", chosen.name)
    with stages("install"):
        init(settings)
    with stages("load"):
        _load(chosen, table, settings)
        _define(chosen, table, settings)
    release = publish(table, k=5, l=3, effort="fast", settings=settings, stages=stages)
    with stages("prove again"):
        report = check(release.relation, settings=settings)
    before, after = _samples((table, release.relation), settings)
    return Demonstration(chosen, *before, release, report, *after)


def _load(dataset: Dataset, table: TableName, settings: Settings) -> None:
    import gzip

    from dbanon.db import demo_tables
    from dbanon.db.session import connect

    deed = Deed(str(table), "loaded", "dbanon demo")
    with connect(settings, writes=True) as session, session.transaction(deed=deed):
        if demo_tables.is_loaded(session, table):
            return
        with gzip.open(resources.data(f"{dataset.name}.csv.gz")) as file:
            demo_tables.load(session, table, file.read(), delimiter=dataset.delimiter)


def _define(dataset: Dataset, table: TableName, settings: Settings) -> None:
    known = {row["name"] for row in list_taxonomies(settings=settings)}
    for name, file in dataset.taxonomies.items():
        if name not in known:
            import_taxonomy(name, resources.data(file), settings=settings)
    set_policy(table, resources.data(f"{dataset.name}.toml"), settings=settings)


def _samples(
    relations: Sequence[TableName], settings: Settings
) -> list[tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]]:
    from dbanon.db import demo_tables, identity
    from dbanon.db.session import connect

    with connect(settings) as session, session.transaction(read_only=True):
        rows = [demo_tables.first_rows(session, relation, limit=8) for relation in relations]
        identity.require_admitted(session)
        return rows
