"""Prove a published relation again, inside the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.errors import CheckFailed, ConfigError
from dbanon.domain.release import Verdict
from dbanon.domain.table import TableName
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.db.promise import Promise
    from dbanon.db.session import Session
    from dbanon.domain.release import CheckReport
    from dbanon.domain.table import TableInfo


def check(
    relation: str | TableName,
    *,
    k: int | None = None,
    l: int | None = None,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    settings: Settings | None = None,
) -> CheckReport:
    """Count every equivalence class of a relation and compare with what it promises.

    A relation that dbanon published carries its promise in its comment; arguments go over it,
    and for any other relation they are the promise. Needs SELECT on the relation and EXECUTE on
    the check functions, nothing else. Raises CheckFailed when a model fails and when there is
    nothing to check.
    """
    from dbanon.db import catalog, checks, population
    from dbanon.db.session import connect

    where = relation if isinstance(relation, TableName) else TableName.parse(relation)
    with (
        connect(settings or Settings.load()) as session,
        session.transaction(snapshot=True, keep=False),
    ):
        session.allow_memory()
        info = catalog.describe(session, where)
        promise = _promise(session, info, k=k, l=l, quasi=quasi, sensitive=sensitive)
        report = checks.prove(session, info, promise)
        report = population.prove_again(session, info, promise, report)
    if not report.passed:
        raise CheckFailed(_reason(report), report, hint="dbanon release list")
    return report


def _promise(
    session: Session,
    info: TableInfo,
    *,
    k: int | None,
    l: int | None,
    quasi: Sequence[str],
    sensitive: Sequence[str],
) -> Promise:
    from dataclasses import replace

    from dbanon.db.promise import Promise, read_promise

    promise = read_promise(session, info)
    if promise is None:
        if not quasi or k is None:
            raise ConfigError(
                f"{info.name} carries no promise of dbanon's to check",
                hint=f"dbanon check {info.name} --quasi age --quasi sex --k 5",
            )
        promise = Promise(release=0, quasi=tuple(quasi), sensitive=(), models=())
    for column in (*quasi, *sensitive):
        info.column(column)
    promise = replace(
        promise.over(k=k, l=l),
        quasi=tuple(quasi) or promise.quasi,
        sensitive=tuple(sensitive) or promise.sensitive,
    )
    if promise.l > 1 and not promise.sensitive:
        raise ConfigError("l-diversity needs a sensitive column", hint="--sensitive COLUMN")
    return promise


def _reason(report: CheckReport) -> str:
    if all(result.verdict is Verdict.NOT_CHECKED for result in report.results):
        return f"{report.relation} is empty: nothing was checked, so nothing is proved"
    unseen = [r.model for r in report.results if r.verdict is Verdict.NOT_CHECKED]
    if not any(result.verdict is Verdict.FAILED for result in report.results):
        return (
            f"{report.relation}: {', '.join(unseen)} was not checked, which only a role that reads"
            " the population and the ledger can; all else holds"
        )
    reasons = [
        f"{result.model}{f' of {result.column}' if result.column else ''} requires"
        f" {result.required:g}, the worst class has {result.achieved:g}"
        f" ({result.failing_classes:,} of {result.classes:,} classes fail)"
        for result in report.results
        if result.verdict is Verdict.FAILED
    ]
    return f"{report.relation} does not hold what it promises: {'; '.join(reasons)}"
