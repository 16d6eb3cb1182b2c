"""Tables of people for tests that need a database."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from psycopg import sql

import dbanon
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

if TYPE_CHECKING:
    from servers import Database

    from dbanon.domain.release import Release

DISEASES = ("flu", "gastritis", "cancer", "asthma", None)

# The hospital tables of Machanavajjhala et al. (TKDD 2007): published zip, age, then condition.
HOSPITAL_A = [
    *[("130**", "<30", condition) for condition in ("heart", "heart", "viral", "viral")],
    *[("1485*", ">=40", condition) for condition in ("cancer", "heart", "viral", "viral")],
    *[("130**", "3*", "cancer")] * 4,
]
HOSPITAL_B = [
    *[("1305*", "<=40", condition) for condition in ("heart", "viral", "cancer", "cancer")],
    *[("1485*", ">40", condition) for condition in ("cancer", "heart", "viral", "viral")],
    *[("1306*", "<=40", condition) for condition in ("heart", "viral", "cancer", "cancer")],
]


def make_patients(database: Database, *, rows: int = 200, name: str = "patients") -> TableName:
    """Create ``public.<name>`` with ordinary people in it and return its name."""
    source = random.Random(7)  # noqa: S311 - people, not secrets
    table = TableName("public", name)
    target = sql.Identifier("public", name)
    with database.connect() as connection:
        connection.execute(
            sql.SQL(
                "CREATE TABLE {} (id integer PRIMARY KEY, age integer, sex text, born date,"
                " weight numeric(5, 1), disease text, note text)"
            ).format(target)
        )
        copy_in = sql.SQL("COPY {} FROM STDIN").format(target)
        with connection.cursor().copy(copy_in) as copy:
            for i in range(rows):
                age = source.randint(18, 90)
                born = f"{2020 - age}-{source.randint(1, 12):02}-{source.randint(1, 28):02}"
                weight = None if i % 17 == 0 else round(source.gauss(75, 12), 1)
                disease = source.choice(DISEASES)
                copy.write_row((i, age, source.choice("FM"), born, weight, disease, f"note {i}"))
    return table


def patients_policy(table: TableName, *, k: int | None = 5, l: int | None = 3, **changes) -> Policy:
    """Return a policy for the table of ``make_patients``, by an algorithm that is done at once."""
    models = [ModelSpec(K_ANONYMITY, {"k": k})] if k else []
    models += [ModelSpec(L_DIVERSITY, {"l": l})] if l else []
    columns = (
        ColumnRule("id", Role.IDENTIFIER),
        ColumnRule("age", Role.QUASI),
        ColumnRule("sex", Role.QUASI),
        ColumnRule("born", Role.QUASI),
        ColumnRule("weight", Role.QUASI),
        ColumnRule("disease", Role.SENSITIVE),
        ColumnRule("note", Role.INSENSITIVE, allow=("near-unique: the numbers are made up",)),
    )
    algorithm = "auto" if changes.get("anatomy") else "mondrian"  # anatomy searches for nothing
    chosen = {"algorithm": algorithm, **changes}
    return Policy(table=table, columns=columns, models=tuple(models), **chosen)


def define_patients(database: Database) -> None:
    """Create ``public.patients`` with a stored policy: k = 5 and l = 3, by strict Mondrian."""
    table = make_patients(database)
    dbanon.set_policy(table, patients_policy(table), settings=database.settings)


def publish_patients(database: Database) -> None:
    """Publish them as ``anon.patients``."""
    define_patients(database)
    dbanon.publish("patients", settings=database.settings)


def serve_patients(database: Database) -> None:
    """Publish them as a live view of that name."""
    define_patients(database)
    dbanon.publish("patients", kind="view", settings=database.settings)


def unseal(database: Database, release: int) -> None:
    """Open the private copy of a release as its owner could: in steps, none of them a mistake."""
    table = sql.Identifier("dbanon_data", f"release_{release}")
    with database.connect() as connection:
        connection.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER ALL").format(table))
        connection.execute(sql.SQL("GRANT ALL ON {} TO CURRENT_USER").format(table))


# Models of which a class may have no more than is required; of all others it has at least that.
AT_MOST = frozenset(
    {
        "t-closeness",
        "n-t-closeness",
        "beta-likeness",
        "delta-disclosure",
        "alpha-k-anonymity",
        "listed-alpha-k-anonymity",
        "delta-presence",
        "recursive-l-diversity",
        "pd-recursive-l-diversity",
        "npd-recursive-l-diversity",
    }
)


def rows_proved(release: Release) -> int:
    """Return of how many rows a release was proved, after a look at every figure of the proof.

    The verdict alone says nothing of a release: one that does not pass is never returned.
    """
    results = release.checks.results
    assert {K_ANONYMITY, *(spec.name for spec in release.policy.models)} == {
        found.model for found in results
    }
    for found in results:
        assert found.classes > 0, found
        assert found.failing_classes == 0, found
        least, most = found.required, found.achieved
        least, most = (most, least) if found.model in AT_MOST else (least, most)
        assert least <= most + 1e-9, found
    by_rows, loss = results[0], release.loss
    assert by_rows.required == release.policy.k
    assert by_rows.achieved == loss.smallest_class
    assert by_rows.classes == loss.n_classes
    assert by_rows.n_rows == loss.n_rows - loss.n_suppressed
    return by_rows.n_rows
