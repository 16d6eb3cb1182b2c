"""Prove a relation's models with the functions that the database itself holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.models import asked, model_statement
from dbanon.db.queries import relation as relation_name
from dbanon.domain.errors import SchemaOutOfDate
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY
from dbanon.domain.release import CheckReport, CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.db.promise import Promise
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo, TableName

_K = "SELECT * FROM dbanon.check_k_anonymity({relation}, {quasi}, {k})"
_L = "SELECT * FROM dbanon.check_l_diversity({relation}, {quasi}, {sensitive}, {l})"


def check_statements(
    relation: sql.Composable, promise: Promise
) -> Iterator[tuple[str, str | None, sql.Composed]]:
    """Yield one call for each model: (model, sensitive column, statement).

    ``relation`` is an expression of type regclass.
    """
    quasi = sql.Literal(list(promise.quasi))
    yield K_ANONYMITY, None, sql.SQL(_K).format(relation=relation, quasi=quasi, k=promise.k)
    if promise.l > 1:
        for column in promise.sensitive:
            call = sql.SQL(_L).format(relation=relation, quasi=quasi, sensitive=column, l=promise.l)
            yield L_DIVERSITY, column, call
    for question in asked(promise.models, quasi=promise.quasi, sensitive=promise.sensitive):
        call = model_statement(relation, question, trees=promise.trees)
        yield question.spec.name, question.column, call


def prove(session: Session, info: TableInfo, promise: Promise) -> CheckReport:
    """Run every check on the relation as the current role sees it."""
    row = session.pg.execute("SELECT to_regnamespace('dbanon') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        raise SchemaOutOfDate("this database has no dbanon check functions", hint="dbanon init")
    results = []
    relation = sql.SQL("{}::oid::regclass").format(info.oid)
    for model, column, statement in check_statements(relation, promise):
        found = session.pg.execute(statement).fetchone()
        assert found is not None  # noqa: S101 - the functions return exactly one row
        required, achieved, classes, failing, n_rows, verdict = found
        results.append(
            CheckResult(
                model, column, required, achieved, classes, failing, n_rows, Verdict(verdict)
            )
        )
    return CheckReport(info.name, tuple(results))


def named(name: TableName) -> sql.Composed:
    """Address a relation by its quoted name, for SQL that a person will read."""
    return sql.SQL("{}::regclass").format(sql.Literal(relation_name(name).as_string()))
