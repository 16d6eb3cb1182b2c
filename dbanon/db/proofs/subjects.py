"""Prove models for persons, of one table or of several, by the private membership of a release."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from psycopg import sql

from dbanon.db.models.statements import demands, model_statement
from dbanon.db.queries import equal_text, identifiers, template
from dbanon.db.releases.publication import data_table
from dbanon.domain.checks import CheckReport, CheckResult, Verdict
from dbanon.domain.policy import K_ANONYMITY, Role
from dbanon.models.base import Bound, OfPersons, Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import model_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dbanon.db.models.statements import Demand
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session


_MEASURES = {
    OfPersons.TOP_SHARE: sql.SQL("x.most::double precision / o.persons"),
    OfPersons.INVERSE_TOP_SHARE: sql.SQL("o.persons::double precision / x.most"),
    OfPersons.DIFFERENT_VALUES: sql.SQL("x.different - greatest(o.sole - 1, 0)"),
}


def prove_subjects(
    session: Session, publication: Publication, report: CheckReport, *, several: bool
) -> CheckReport:
    """Add the number of distinct persons per class to a report, if there is a subject.

    With ``several`` rows per person, models of sensitive columns are proved for persons, too.
    Readers cannot repeat this, because the release has no subjects.
    """
    subject, k = publication.policy.subject, publication.policy.k
    if subject is None:
        return report
    columns = (sql.Identifier("g", f"q{i}") for i, _ in enumerate(publication.recodings, 1))
    statement = template(
        "proofs.prove_subjects",
        k=sql.Literal(k),
        subject=sql.Identifier(subject),
        source=publication.reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
        columns=sql.SQL(", ").join(columns),
    )
    row = session.one(statement)
    result = CheckResult(K_ANONYMITY, subject, *(*row, verdict(*row[2:4])))
    more = [*prove_persons(session, publication, by=subject)] if several else []
    if several and publication.policy.rows_per_subject is not None:
        number = sql.SQL("count(*) OVER (PARTITION BY s.{})").format(sql.Identifier(subject))
        more += prove_persons(session, publication, by=_by_number(subject), apart=number)
        more.append(_alike(session, publication, subject))
    return CheckReport(report.relation, (*report.results, *more, result))


def _alike(session: Session, publication: Publication, subject: str) -> CheckResult:
    """Count the persons per class with equal numbers of rows."""
    columns = [f"q{i}" for i, _ in enumerate(publication.recodings, 1)]
    statement = template(
        "proofs.prove_occurrences",
        k=sql.Literal(publication.policy.k),
        subject=sql.Identifier(subject),
        source=publication.reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
        columns=identifiers(columns, of="g"),
        classes=identifiers(columns, of="p"),
    )
    row = session.one(statement)
    return CheckResult(K_ANONYMITY, _by_number(subject), *(*row, verdict(*row[2:4])))


def _by_number(subject: str) -> str:
    return f"{subject} by number of rows"


def verdict(classes: int, failing: int) -> Verdict:
    """Return the verdict for failing classes; without classes, not checked."""
    if not classes:
        return Verdict.NOT_CHECKED
    return Verdict.FAILED if failing else Verdict.PASSED


def prove_persons(
    session: Session,
    publication: Publication,
    *,
    by: str,
    apart: sql.Composable | None = None,
) -> Iterator[CheckResult]:
    """Yield the results of the models for distinct persons with their distinct values.

    by: the name in results; apart: an expression that divides the persons ``s`` of a class.
    """
    policy, subject = publication.policy, publication.policy.subject or ""
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    quasi = [column for column, _ in publication.recodings]
    more = {} if apart is None else {_unused({*quasi, *sensitive, subject}): apart}
    every = [*quasi, *more]
    for demand in demands(policy.models, quasi=every, sensitive=sensitive):
        if MODELS[demand.spec.name].scope is not Scope.SENSITIVE:
            continue  # rows and persons have the same number of distinct values
        used = [name for name in sensitive if name in {demand.column, *demand.quasi}]
        session.pg.execute(_create(publication, subject, quasi, used, more=more))
        persons, column = publication.persons, f"{demand.column} by {by}"
        if MODELS[demand.spec.name].of_persons and set(demand.quasi) == set(every):
            yield judge_persons(session, persons, demand, subject=subject, column=column)
        else:
            yield judge_rows(session, persons, demand, column=column, trees=publication.trees)
        session.pg.execute(sql.SQL("DROP TABLE {}").format(publication.persons))


def _unused(names: Collection[str]) -> str:
    return next(name for i in count() if (name := f"n{i}") not in names)


def _create(
    publication: Publication,
    subject: str,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    *,
    more: Mapping[str, sql.Composable],
) -> sql.Composed:
    columns: list[sql.Composable] = [
        sql.SQL("{} AS {}").format(sql.Identifier("g", f"q{i}"), sql.Identifier(name))
        for i, name in enumerate(quasi, 1)
    ]
    columns += [sql.Identifier("s", name) for name in sensitive]
    columns += [
        sql.SQL("{} AS {}").format(value, sql.Identifier(name)) for name, value in more.items()
    ]
    return template(
        "proofs.create_persons",
        persons=publication.persons,
        columns=sql.SQL(", ").join(columns),
        subject=sql.Identifier(subject),
        source=publication.reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
    )


def judge_persons(
    session: Session, persons: sql.Composable, demand: Demand, *, subject: str, column: str
) -> CheckResult:
    """Check a table of persons by a model's definition for persons; column: in the result."""
    statement = persons_statement(persons, demand, subject=subject)
    return result_of_persons(demand, session.one(statement), column=column)


def result_of_persons(demand: Demand, row: Sequence[Any], *, column: str) -> CheckResult:
    """Convert a row of ``persons_statement`` into a result for that column."""
    required, least, most, classes, below, above, members = row
    at_most = MODELS[demand.spec.name].bound is Bound.AT_MOST
    failing, achieved = (above, most) if at_most else (below, least)
    figures = required, achieved, classes, failing, members
    return CheckResult(demand.spec.name, column, *(*figures, verdict(classes, failing)))


def judge_rows(
    session: Session,
    rows: sql.Identifier,
    demand: Demand,
    *,
    column: str,
    trees: Mapping[str, object],
) -> CheckResult:
    """Check a private table with the check of a model; column: its name in the result."""
    table = sql.SQL("{}::regclass").format(sql.Literal(rows.as_string(session.pg)))
    statement = model_statement(table, demand, trees=trees)
    return result_of_rows(demand, session.one(statement), column=column)


def result_of_rows(demand: Demand, row: Sequence[Any], *, column: str) -> CheckResult:
    """Convert a row of the check of a model into a result for that column."""
    *figures, found = row
    return CheckResult(demand.spec.name, column, *(*figures, Verdict(found)))


def persons_statement(persons: sql.Composable, demand: Demand, *, subject: str) -> sql.Composed:
    """Compose the check of a table of persons, with the columns of ``proofs.prove_persons``."""
    model = model_of(demand.spec)
    assert model.of_persons is not None  # noqa: S101 - only for models with a definition for persons
    return template(
        "proofs.prove_persons",
        persons=persons,
        quasi=identifiers(demand.quasi),
        value=sql.Identifier(demand.column),
        subject=sql.Identifier(subject),
        achieved=_MEASURES[model.of_persons],
        required=sql.Literal(model.required),
    )


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
