"""Prove the models of a relation with the functions in the database."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from dbanon.db.models.functions import demands
from dbanon.db.proofs.subjects import verdict
from dbanon.db.queries import relation as relation_name
from dbanon.domain.errors import DatabaseError, SchemaOutOfDate
from dbanon.domain.release import CheckReport, CheckResult, Verdict
from dbanon.formats.policies import model_documents
from dbanon.models.base import Bound, Scope
from dbanon.models.registry import MODELS, model_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.db.releases.relations import Promise
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo, TableName

_PROMISED = sql.SQL("SELECT * FROM dbanon.verify_promise({}, {})")


def verification(relation: sql.Composable) -> sql.Composed:
    """Compose the query with which any reader proves a published relation."""
    return sql.SQL("SELECT * FROM dbanon.verify({})").format(relation)


def proof(view: TableName) -> sql.Composed:
    """Compose the same as a comment, for a script that has no rows to prove."""
    return sql.SQL("-- {}").format(verification(named(view)))


def prove(session: Session, info: TableInfo, promise: Promise, *, own: bool = True) -> CheckReport:
    """Prove a promise in one statement: that of auditors, if it is in the relation's comment.

    Leaves out models of a population, which readers cannot repeat. Raises DatabaseError if the
    answer does not match the promise, or contradicts itself, and SchemaOutOfDate without functions.
    """
    relation = sql.SQL("{}::oid::regclass").format(info.oid)
    statement = verification(relation)
    if not own:
        statement = _PROMISED.format(relation, sql.Literal(Jsonb(promise.document)))
    try:
        rows = session.pg.execute(statement).fetchall()
    except psycopg.errors.InvalidSchemaName:
        raise SchemaOutOfDate(
            "this database has no dbanon check functions", hint="dbanon init"
        ) from None
    unanswered, results = [*_questions(promise)], None
    with suppress(TypeError, ValueError, AttributeError):
        found = [_Verified(*row) for row in rows]
        for answer in found:
            asked = answer.model, answer.column, _values(answer.parameters), float(answer.required)
            unanswered.remove(_Question(*asked))
        proved = [one for one in found if MODELS[one.model].scope is not Scope.POPULATION]
        results = tuple(map(_result, proved))
    if results is None or unanswered or not all(map(_is_coherent, results)):
        raise DatabaseError(
            "dbanon.verify did not answer for each promised model; nothing was proved",
            hint="dbanon doctor, and ask who owns the schema dbanon who has replaced the function",
        )
    return CheckReport(info.name, results)


def extended(
    former: CheckReport, found: CheckReport, *, rows: int, lost: int
) -> CheckReport | None:
    """Return the proof of an extended copy; None if its former classes have no proof like that.

    former: of the copy before; found: of the classes that were written; rows: how many it gained;
    lost: number of former classes that it lost. Achieved is the worst of both, of which a class may
    be gone by now.
    """
    pairs = [*zip(former.results, found.results, strict=False)]
    is_alike = all(
        (one.model, one.column, one.required) == (new.model, new.column, new.required)
        for one, new in pairs
    )
    if not (former.passed and is_alike and len(pairs) == len(found.results)):
        return None
    results = (_extended(one, new, rows=rows, lost=lost) for one, new in pairs)
    return CheckReport(found.relation, tuple(results))


def _extended(one: CheckResult, new: CheckResult, *, rows: int, lost: int) -> CheckResult:
    worst = min if MODELS[one.model].bound is Bound.AT_LEAST else max
    classes = one.classes - lost + new.classes
    achieved = [each.achieved for each in (one, new) if each.achieved is not None]
    return replace(
        new,
        achieved=worst(achieved, default=None),
        classes=classes,
        n_rows=one.n_rows + rows,
        verdict=verdict(classes, new.failing_classes),
    )


class _Verified(NamedTuple):
    """A row of ``dbanon.verify``."""

    model: str
    column: str | None
    parameters: dict[str, object]
    required: float
    achieved: float | None
    classes: int
    failing: int
    n_rows: int
    verdict: str


class _Question(NamedTuple):
    """The expected part of a row of ``dbanon.verify``."""

    model: str
    column: str | None
    parameters: dict[str, object]
    required: float


def _values(parameters: Mapping[str, object]) -> dict[str, object]:
    return {
        name: float(value) if isinstance(value, int | float) else value
        for name, value in parameters.items()
    }


def _questions(promise: Promise) -> Iterator[_Question]:
    for spec, document in zip(promise.models, model_documents(promise.models), strict=True):
        parameters = _values(cast("dict[str, object]", document["params"]))
        for demand in demands([spec], quasi=promise.quasi, sensitive=promise.sensitive):
            column = demand.column or None
            yield _Question(spec.name, column, parameters, model_of(spec).required)


def _is_coherent(result: CheckResult) -> bool:
    """Return True unless a passed result has no classes, no rows or failing classes."""
    if result.verdict is not Verdict.PASSED:
        return True
    looked = result.classes > 0 and result.n_rows > 0 and result.achieved is not None
    return looked and result.failing_classes == 0


def _result(row: _Verified) -> CheckResult:
    required, achieved = row.required, row.achieved
    if MODELS[row.model].counts:
        required, achieved = int(required), None if achieved is None else int(achieved)
    figures = required, achieved, row.classes, row.failing, row.n_rows
    return CheckResult(row.model, row.column, *(*figures, Verdict(row.verdict)))


def named(name: TableName) -> sql.Composed:
    """Address a relation by its quoted name, in SQL for people."""
    return sql.SQL("{}::regclass").format(sql.Literal(relation_name(name).as_string()))
