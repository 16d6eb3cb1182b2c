"""Prove models of persons, which only the private membership of a release can tell."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.models.statements import demands, model_statement
from dbanon.db.queries import identifiers, template
from dbanon.domain.checks import CheckReport, CheckResult, Verdict
from dbanon.domain.policy import K_ANONYMITY, Role
from dbanon.models.base import OfPersons, Scope
from dbanon.models.bounds import Bound
from dbanon.models.registry import MODELS
from dbanon.models.specs import model_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

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
    """Add to a report how many distinct persons the published classes have, if a subject is named.

    Where persons have ``several`` rows, the models of sensitive columns are proved of persons, too.
    The published relation holds no subject, so that nobody but the role that publishes can repeat
    this one.
    """
    subject, k = publication.policy.subject, publication.policy.k
    if subject is None:
        return report
    columns = (sql.Identifier("g", f"q{i}") for i, _ in enumerate(publication.recodings, 1))
    statement = template(
        "proofs/prove_subjects",
        k=sql.Literal(k),
        subject=sql.Identifier(subject),
        source=publication.reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
        columns=sql.SQL(", ").join(columns),
    )
    found = session.pg.execute(statement).fetchone()
    assert found is not None  # noqa: S101 - an aggregate always has a row
    required, achieved, classes, failing, members = found
    result = CheckResult(
        K_ANONYMITY,
        subject,
        required,
        achieved,
        classes,
        failing,
        members,
        _verdict(classes, failing),
    )
    more = [*_of_persons(session, publication, subject)] if several else []
    if several and publication.policy.rows_per_subject is not None:
        more += _of_persons(session, publication, subject, alike=True)
        more.append(_alike(session, publication, subject))
    return CheckReport(report.relation, (*report.results, *more, result))


def _alike(session: Session, publication: Publication, subject: str) -> CheckResult:
    """Count the persons of a class who have equally many rows."""
    columns = [f"q{i}" for i, _ in enumerate(publication.recodings, 1)]
    statement = template(
        "proofs/prove_occurrences",
        k=sql.Literal(publication.policy.k),
        subject=sql.Identifier(subject),
        source=publication.reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
        columns=identifiers(columns, of="g"),
        classes=identifiers(columns, of="p"),
    )
    found = session.pg.execute(statement).fetchone()
    assert found is not None  # noqa: S101 - an aggregate always has a row
    required, achieved, classes, failing, members = found
    return CheckResult(
        K_ANONYMITY,
        _spelled(subject, alike=True),
        required,
        achieved,
        classes,
        failing,
        members,
        _verdict(classes, failing),
    )


def _spelled(subject: str, *, alike: bool) -> str:
    return f"{subject} by number of rows" if alike else subject


def _verdict(classes: int, failing: int) -> Verdict:
    if not classes:
        return Verdict.NOT_CHECKED
    return Verdict.FAILED if failing else Verdict.PASSED


def _of_persons(
    session: Session, publication: Publication, subject: str, *, alike: bool = False
) -> Iterator[CheckResult]:
    """Yield what the models achieve of the distinct persons with their distinct values.

    alike: of those of a class who have equally many rows.
    """
    policy = publication.policy
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    quasi = [column for column, _ in publication.recodings]
    number = [_unused({*quasi, *sensitive, subject})] if alike else []
    by = _spelled(subject, alike=alike)
    every = [*quasi, *number]
    for demand in demands(policy.models, quasi=every, sensitive=sensitive, plain=True):
        if MODELS[demand.spec.name].scope is Scope.LINKS:
            continue  # distinct values are as many among rows as among persons
        used = [name for name in sensitive if name in {demand.column, *demand.quasi}]
        session.pg.execute(_create(publication, subject, quasi, used, number=number))
        if MODELS[demand.spec.name].of_persons and set(demand.quasi) == set(every):
            column = f"{demand.column} by {by}"
            yield judge_persons(
                session, publication.persons, demand, subject=subject, column=column
            )
        else:
            persons = sql.SQL("{}::regclass").format(
                sql.Literal(publication.persons.as_string(session.pg))
            )
            call = model_statement(persons, demand, trees=publication.trees)
            row = session.pg.execute(call).fetchone()
            assert row is not None  # noqa: S101 - an aggregate always has a row
            required, achieved, classes, failing, members, verdict = row
            yield CheckResult(
                demand.spec.name,
                f"{demand.column} by {by}",
                required,
                achieved,
                classes,
                failing,
                members,
                Verdict(verdict),
            )
        session.pg.execute(sql.SQL("DROP TABLE {}").format(publication.persons))


def _unused(names: Collection[str]) -> str:
    """Return a name that no column of the persons has."""
    return next(name for i in count() if (name := f"n{i}") not in names)


def _create(
    publication: Publication,
    subject: str,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    *,
    number: Sequence[str],
) -> sql.Composed:
    columns: list[sql.Composable] = [
        sql.SQL("{} AS {}").format(sql.Identifier("g", f"q{i}"), sql.Identifier(name))
        for i, name in enumerate(quasi, 1)
    ]
    columns += [sql.Identifier("s", name) for name in sensitive]
    columns += [
        sql.SQL("count(*) OVER (PARTITION BY s.{}) AS {}").format(
            sql.Identifier(subject), sql.Identifier(name)
        )
        for name in number
    ]
    return template(
        "proofs/create_persons",
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
    """Judge a table of persons by what a model means of them; column: as the result names it."""
    statement = persons_statement(persons, demand, subject=subject)
    found = session.pg.execute(statement).fetchone()
    assert found is not None  # noqa: S101 - an aggregate always has a row
    required, least, most, classes, below, above, members = found
    at_most = MODELS[demand.spec.name].bound is Bound.AT_MOST
    failing = above if at_most else below
    return CheckResult(
        demand.spec.name,
        column,
        required,
        most if at_most else least,
        classes,
        failing,
        members,
        _verdict(classes, failing),
    )


def persons_statement(persons: sql.Composable, demand: Demand, *, subject: str) -> sql.Composed:
    """Compose what judges a table of persons; it returns what ``prove_persons.sql`` says."""
    model = model_of(demand.spec)
    assert model.of_persons is not None  # noqa: S101 - only of those that say what they mean
    return template(
        "proofs/prove_persons",
        persons=persons,
        quasi=identifiers(demand.quasi),
        value=sql.Identifier(demand.column),
        subject=sql.Identifier(subject),
        achieved=_MEASURES[model.of_persons],
        required=sql.Literal(model.required),
    )
