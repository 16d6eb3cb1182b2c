"""Prove the models of a population, which requires the right to read it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db import catalog, identity
from dbanon.db.metadata import ledger, store
from dbanon.db.models.statements import demands, model_statement
from dbanon.db.queries import query
from dbanon.db.session import only
from dbanon.domain.checks import CheckReport, CheckResult, Verdict
from dbanon.domain.errors import NotPermitted, PolicyError, TableNotFound
from dbanon.domain.policy import Role
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import command
from dbanon.models.base import Scope
from dbanon.models.specs import model_of, of_scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dbanon.db.releases.guarantee import Promise
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo, TableName
    from dbanon.domain.taxonomy import Taxonomy


def describe(session: Session, info: TableInfo, policy: Policy, *, n_rows: int) -> TableInfo:
    """Describe the population of a policy; raises PolicyError if it does not fit the table."""
    if policy.population is None:
        raise PolicyError("the policy names no population", hint="--population schema.table")
    found = _locked(session, policy.population)
    problems = [*_problems(session, found), *_misfits(info, found, policy)]
    if not problems:
        identity.admit(session, found)
        if (rows := _count(session, found)) < n_rows:
            problems.append(f"it has {rows:,} rows, fewer than the {n_rows:,} of {info.name}")
    if problems:
        raise PolicyError(
            f"{found.name} is not the population of {info.name}: {'; '.join(problems)}",
            hint=command("dbanon inspect", found.name),
        )
    return found


def admitted(session: Session, name: TableName) -> TableInfo:
    """Describe and admit a population for reading; raises NotPermitted and PolicyError."""
    found = _locked(session, name)
    problems = list(_problems(session, found))
    if problems:
        raise PolicyError(
            f"the population {found.name} is not read: {'; '.join(problems)}",
            hint=command("dbanon inspect", found.name),
        )
    identity.admit(session, found)
    return found


def _locked(session: Session, name: TableName) -> TableInfo:
    """Describe and lock a relation; raises NotPermitted if the role cannot read it."""
    found = catalog.describe(session, name)
    row = session.pg.execute(
        "SELECT has_table_privilege(%s::oid, 'SELECT')", (found.oid,)
    ).fetchone()
    if not (row and row[0]):
        raise NotPermitted(f"this role may not read {name}", hint=f"GRANT SELECT ON {name} TO ...")
    identity.hold(session, found)
    return catalog.describe(session, name)


def _problems(session: Session, found: TableInfo) -> Iterator[str]:
    """Yield reasons not to read a relation: foreign code, or row-level security."""
    if found.relkind not in {"r", "p"}:
        yield "it is no table: reading anything else may run foreign code"
    else:
        for function, owner in identity.foreign_code(session, found):
            yield f"reading it may run {function} of {owner}"
    if found.row_security:
        yield "it has row-level security, and might show some rows only"


def _misfits(info: TableInfo, found: TableInfo, policy: Policy) -> Iterator[str]:
    if found.oid == info.oid:
        yield "it is the table itself"
    columns = {column.name: column for column in found.columns}
    for rule in policy.with_role(Role.QUASI):
        own, other = info.column(rule.column), columns.get(rule.column)
        if other is None:
            yield f"it has no column {quote_identifier(rule.column)}"
        elif (own.base_schema, own.base_type) != (other.base_schema, other.base_type):
            name = quote_identifier(rule.column)
            yield f"its column {name} is of type {other.type}, not {own.type}"


def _count(session: Session, info: TableInfo) -> int:
    statement = sql.SQL("SELECT count(*) FROM {}").format(identity.readable(session, info))
    count: int = only(identity.harmless(session, statement))[0]
    return count


def prove(
    session: Session,
    info: TableInfo,
    policy: Policy,
    report: CheckReport,
    *,
    versions: Mapping[str, int],
) -> CheckReport:
    """Add the checks of a population to a report; versions: the release's taxonomies."""
    specs = of_scope(policy.models, Scope.POPULATION)
    if not specs or policy.population is None:
        return report
    found = catalog.describe(session, policy.population)
    people = sql.SQL("{}::regclass").format(
        sql.Literal(identity.readable(session, found).as_string(session.pg))
    )
    quasi = policy.with_role(Role.QUASI)
    named = {
        rule.column: rule.taxonomy
        for rule in quasi
        if rule.taxonomy is not None and rule.recoding in {None, "label"}
    }
    known = store.load_taxonomies(session, {name: versions.get(name, 0) for name in named.values()})
    trees = {column: labels_document(known[name]) for column, name in named.items()}
    results = list(report.results)
    published = sql.SQL("{}::oid::regclass").format(info.oid)
    for demand in demands(specs, quasi=[rule.column for rule in quasi], sensitive=()):
        call = model_statement(published, demand, trees=trees, population=people)
        *figures, verdict = only(identity.harmless(session, call))
        results.append(CheckResult(demand.spec.name, None, *(*figures, Verdict(verdict))))
    return CheckReport(report.relation, tuple(results))


def prove_again(
    session: Session, info: TableInfo, promise: Promise, report: CheckReport
) -> CheckReport:
    """Add the checks of a population to a later report, as not checked if it cannot be read."""
    specs = of_scope(promise.models, Scope.POPULATION)
    if not specs:
        return report
    release = None
    row = session.pg.execute(query("rights.readable")).fetchone()
    if row is not None and row[0]:
        release = ledger.release_by_id(session, promise.release)
    if release is not None and _is_there(session, release):
        policy = replace(release.policy, models=specs)
        return prove(session, info, policy, report, versions=release.taxonomies)
    unseen = (
        CheckResult(s.name, None, model_of(s).required, None, 0, 0, 0, Verdict.NOT_CHECKED)
        for s in specs
    )
    return CheckReport(report.relation, (*report.results, *unseen))


def _is_there(session: Session, release: Release) -> bool:
    """Return True if the population of a release can still be read and still fits."""
    if release.policy.population is None:
        return False
    try:
        found = catalog.describe(session, release.policy.population)
        source = catalog.describe(session, release.table)
        if [*_problems(session, found), *_misfits(source, found, release.policy)]:
            return False  # not locked either: locking a view opens it
        admitted(session, release.policy.population)
    except (TableNotFound, NotPermitted, PolicyError):
        return False
    return True


def labels_document(tree: Taxonomy) -> dict[str, object]:
    """Return a taxonomy as ``dbanon.presence`` takes it: the ancestors of each leaf."""
    labels: dict[str, list[str]] = {}
    for leaf in tree.leaves.tolist():
        above, node = [], leaf
        while node >= 0:
            above.append(tree.labels[node])
            node = int(tree.parent[node])
        labels[tree.labels[leaf]] = above
    return {"root": tree.labels[0], "labels": labels}
