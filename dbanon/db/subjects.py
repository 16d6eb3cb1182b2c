"""Prove k by persons, which only the private membership of a release can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.queries import template
from dbanon.domain.policy import K_ANONYMITY
from dbanon.domain.release import CheckReport, CheckResult, Verdict

if TYPE_CHECKING:
    from dbanon.db.relations import Publication
    from dbanon.db.session import Session


def prove_subjects(session: Session, publication: Publication, report: CheckReport) -> CheckReport:
    """Add to a report how many distinct persons the published classes have, if a subject is named.

    The published relation holds no subject, so that nobody but the role that publishes can repeat
    this one.
    """
    subject, k = publication.policy.subject, publication.policy.k
    if subject is None:
        return report
    columns = (sql.Identifier("g", f"q{i}") for i, _ in enumerate(publication.recodings, 1))
    statement = template(
        "prove_subjects",
        k=sql.Literal(k),
        subject=sql.Identifier(subject),
        source=publication.source,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
        columns=sql.SQL(", ").join(columns),
    )
    found = session.pg.execute(statement).fetchone()
    assert found is not None  # noqa: S101 - an aggregate always has a row
    required, achieved, classes, failing, members = found
    verdict = Verdict.NOT_CHECKED
    if classes:
        verdict = Verdict.FAILED if failing else Verdict.PASSED
    result = CheckResult(
        K_ANONYMITY, subject, required, achieved, classes, failing, members, verdict
    )
    return CheckReport(report.relation, (*report.results, result))
