"""Prove the models of a relation with the functions in the database."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

from psycopg import sql

from dbanon.db.models.functions import demands, model_statement
from dbanon.db.queries import relation as relation_name
from dbanon.domain.errors import DatabaseError, SchemaOutOfDate
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, PROBABILISTIC, ModelSpec
from dbanon.domain.release import CheckReport, CheckResult, Verdict
from dbanon.formats.policies import model_documents
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS, is_plain, model_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.db.releases.relations import Promise
    from dbanon.db.session import Session
    from dbanon.domain.table import TableInfo, TableName

_ANATOMY = "SELECT * FROM dbanon.check_anatomy({relation}, {sensitive}, {l})"
_K_AND_L = """\
SELECT required, achieved, classes, failing_classes, row_count, verdict
  FROM dbanon.check_k_and_l({relation}, {quasi}, {k}, {sensitive}, {l})
 ORDER BY model"""


class Proof(NamedTuple):
    """A statement that proves models, one row each: (model, sensitive column or None)."""

    models: tuple[tuple[str, str | None], ...]
    statement: sql.Composed


def proofs(relation: sql.Composable, promise: Promise) -> Iterator[Proof]:
    """Yield the proofs of a promise; ``relation`` is an expression of type regclass."""
    if promise.anatomy:
        yield from _of_anatomy(relation, promise)
        return
    quasi, sensitive = promise.quasi, promise.sensitive
    counted = [ModelSpec(K_ANONYMITY, {"k": promise.k})]
    if promise.l > 1:
        counted.append(ModelSpec(L_DIVERSITY, {"l": promise.l}))
    others = [s for s in promise.models if not is_plain(s)]
    asked = [*demands((*counted, *others), quasi=quasi, sensitive=sensitive)]
    if len(counted) > 1 and sensitive:
        both = sql.SQL(_K_AND_L).format(
            relation=relation,
            quasi=sql.Literal(list(quasi)),
            k=promise.k,
            sensitive=sensitive[0],
            l=promise.l,
        )
        yield Proof(((K_ANONYMITY, None), (L_DIVERSITY, sensitive[0])), both)
        asked = asked[2:]
    for demand in asked:
        if MODELS[demand.spec.name].scope is not Scope.POPULATION:
            statement = model_statement(relation, demand, trees=promise.trees)
            yield Proof(((demand.spec.name, demand.column or None),), statement)


def _of_anatomy(relation: sql.Composable, promise: Promise) -> Iterator[Proof]:
    """Yield the proofs that buckets are diverse; the check refuses other models."""
    for spec in promise.models:
        l = spec.params["l"] if spec.name == PROBABILISTIC else None
        for column in promise.sensitive:
            statement = sql.SQL(_ANATOMY).format(relation=relation, sensitive=column, l=l)
            yield Proof(((spec.name, column),), statement)


def prove(session: Session, info: TableInfo, promise: Promise) -> CheckReport:
    """Run every check on the relation with the rights of the current role."""
    if session.one("SELECT to_regnamespace('dbanon') IS NOT NULL") != (True,):
        raise SchemaOutOfDate("this database has no dbanon check functions", hint="dbanon init")
    relation = sql.SQL("{}::oid::regclass").format(info.oid)
    results = []
    for proof in proofs(relation, promise):
        rows = session.pg.execute(proof.statement).fetchall()
        for (model, column), found in zip(proof.models, rows, strict=True):
            *figures, verdict = found
            results.append(CheckResult(model, column, *(*figures, Verdict(verdict))))
    return CheckReport(info.name, tuple(results))


def verification(relation: sql.Composable) -> sql.Composed:
    """Compose the query with which any reader proves a published relation."""
    return sql.SQL("SELECT * FROM dbanon.verify({})").format(relation)


def proof(view: TableName) -> sql.Composed:
    """Compose the same as a comment, for a script that has no rows to prove."""
    return sql.SQL("-- {}").format(verification(named(view)))


def verify(session: Session, info: TableInfo, promise: Promise) -> CheckReport:
    """Prove the promise in a relation's comment, with the statement that auditors run.

    Leaves out models of a population, which readers cannot repeat. Raises DatabaseError if the
    answer does not match the promise, or contradicts itself.
    """
    relation = sql.SQL("{}::oid::regclass").format(info.oid)
    rows = session.pg.execute(verification(relation)).fetchall()
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
            "dbanon.verify did not answer for what was to be published; nothing was",
            hint="dbanon doctor, and ask who owns the schema dbanon who has replaced the function",
        )
    return CheckReport(info.name, results)


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
