"""Prove the tables of a dataset together: of persons who are shown alike in all of them."""

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
    """Return for each table what holds of persons whom a join of all tables cannot tell apart.

    publications: tables whose subjects are the same persons. A cell of persons has the same class
    in each table, or no row in it, and equally many rows where the policy keeps their number from
    telling: k persons share each, and the models of each table hold of the persons of each.
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
    """Compose who a row ``s`` belongs to, as text, by no cast that somebody else made."""
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
