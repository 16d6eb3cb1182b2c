"""Prove the tables of a dataset together, for persons with equal rows in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.proofs.subjects import prove_persons, verdict
from dbanon.db.queries import equal_text, template
from dbanon.db.releases.publication import data_table
from dbanon.domain.checks import CheckResult
from dbanon.domain.policy import K_ANONYMITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session


def prove_linked(
    session: Session, publications: Sequence[Publication]
) -> list[tuple[CheckResult, ...]]:
    """Return the results of each table for persons that a join of all tables cannot distinguish.

    publications: tables with the same subjects. A cell of persons has the same class (or no row) in
    each table, and the same number of rows if the policy has rows_per_subject; it needs k persons.
    """
    cells = data_table("cells", publications[0].id)
    members = [_members(publication, i) for i, publication in enumerate(publications)]
    union = sql.SQL("\n UNION ALL\n").join(members)
    session.pg.execute(template("proofs.create_cells", cells=cells, members=union))
    session.pg.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (person)").format(cells))
    session.pg.execute(sql.SQL("ANALYZE {}").format(cells))
    found = [_prove(session, publication, cells) for publication in publications]
    session.pg.execute(sql.SQL("DROP TABLE {}").format(cells))
    return found


def _person(publication: Publication) -> sql.Composable:
    column = publication.info.column(publication.policy.subject or "")
    return equal_text(column, sql.Identifier("s", column.name))


def _members(publication: Publication, number: int) -> sql.Composed:
    columns = (sql.Identifier(f"q{i}") for i, _ in enumerate(publication.recodings, 1))
    by_number = publication.policy.rows_per_subject is not None
    return template(
        "proofs.cell_members",
        person=_person(publication),
        part=sql.Literal(number),
        times=sql.SQL("count(*)" if by_number else "''"),
        columns=sql.SQL(", ").join(columns),
        source=publication.reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
    )


def _prove(
    session: Session, publication: Publication, cells: sql.Identifier
) -> tuple[CheckResult, ...]:
    subject = publication.policy.subject or ""
    by = f"{subject} by all tables"
    statement = template("proofs.prove_cells", k=sql.Literal(publication.policy.k), cells=cells)
    row = session.one(statement)
    result = CheckResult(K_ANONYMITY, by, *(*row, verdict(*row[2:4])))
    cell = sql.SQL("(SELECT c.cell FROM {} AS c WHERE c.person = {})").format(
        cells, _person(publication)
    )
    return (*prove_persons(session, publication, by=by, apart=cell), result)
