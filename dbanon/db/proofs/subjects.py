"""Prove models for persons, of one table or of several, by the private membership of a release."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from dbanon.db import catalog, identity
from dbanon.db.metadata import ledger, store
from dbanon.db.models.functions import Demand, by_run, class_in_run, demands, model_statement
from dbanon.db.queries import equal_text, identifiers, query, selected, template
from dbanon.db.releases.publication import Publication, data_table
from dbanon.db.session import Session, at_once, only
from dbanon.domain.errors import DatabaseError, NotPermitted, PolicyError, TableNotFound
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, Policy, Role
from dbanon.domain.release import CheckReport, CheckResult, Release, Verdict
from dbanon.domain.table import ColumnInfo, ColumnKind, TableInfo, TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.models.base import Bound, OfPersons, Scope
from dbanon.models.registry import MODELS, model_of, of_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dbanon.db.releases.relations import Promise
    from dbanon.domain.assignment import Taxonomy


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
    subject = publication.policy.subject
    if subject is None:
        return report
    result = _counted(session, publication, "proofs.prove_subjects", column=subject)
    more = [*prove_persons(session, publication, by=subject)] if several else []
    if several and publication.policy.rows_per_subject is not None:
        by = f"{subject} by number of rows"
        number = sql.SQL("count(*) OVER (PARTITION BY s.{})").format(sql.Identifier(subject))
        more += prove_persons(session, publication, by=by, apart=_Apart(number))
        more.append(_counted(session, publication, "proofs.prove_occurrences", column=by))
    return CheckReport(report.relation, (*report.results, *more, result))


def _counted(
    session: Session, publication: Publication, statement: str, *, column: str
) -> CheckResult:
    """Count the persons of each class, all or those with equal numbers of rows."""
    slots = {
        "k": sql.Literal(publication.policy.k),
        "subject": sql.Identifier(publication.policy.subject or ""),
    }
    return _of_k(column, session.one(template(statement, **_joined(publication), **slots)))


def _joined(publication: Publication) -> dict[str, sql.Composable]:
    """Compose the source, the membership, and the class of each group."""
    columns = identifiers([f"q{i}" for i, _ in enumerate(publication.recodings, 1)], of="c")
    classes = template("proofs.classes", columns=columns, groups=publication.groups)
    return {**publication.joined, "classes": classes}


def _of_k(column: str, row: Sequence[Any]) -> CheckResult:
    return CheckResult(K_ANONYMITY, column, *(*row, verdict(*row[2:4])))


def verdict(classes: int, failing: int) -> Verdict:
    """Return the verdict for failing classes; without classes, not checked."""
    if not classes:
        return Verdict.NOT_CHECKED
    return Verdict.FAILED if failing else Verdict.PASSED


class _Apart(NamedTuple):
    """An expression that divides the persons ``s`` of a class, and a join that it needs."""

    number: sql.Composable
    join: sql.Composable = sql.SQL("")


def prove_persons(
    session: Session, publication: Publication, *, by: str, apart: _Apart | None = None
) -> Iterator[CheckResult]:
    """Yield the results of the models for distinct persons with their distinct values.

    by: the name in results; apart: also divides the persons of a class.
    """
    policy, subject = publication.policy, publication.policy.subject or ""
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    unused = (name for i in count() if (name := f"n{i}") not in {*sensitive, subject})
    class_, number = next(unused), next(unused)
    every = [class_] if apart is None else [class_, number]
    for demand in demands(policy.models, quasi=every, sensitive=sensitive):
        if MODELS[demand.spec.name].scope is not Scope.SENSITIVE:
            continue  # rows and persons have the same number of distinct values
        used = [name for name in sensitive if name in {demand.column, *demand.quasi}]
        columns: list[sql.Composable] = [sql.Identifier("s", name) for name in used]
        if apart is not None:
            columns.append(sql.SQL("{} AS {}").format(apart.number, sql.Identifier(number)))
        rows = template(
            "proofs.persons",
            **{"class": sql.Identifier(class_)},
            columns=sql.SQL(", ").join(columns),
            subject=sql.Identifier(subject),
            beside=sql.SQL("") if apart is None else apart.join,
            **_joined(publication),
        )
        column = f"{demand.column} by {by}"
        if MODELS[demand.spec.name].of_persons and set(demand.quasi) == set(every):
            statement = persons_statement(rows, demand, subject=subject)
            yield result_of_persons(demand, session.one(statement), column=column)
        else:
            row = _checked(session, publication, demand, rows)
            yield result_of_rows(demand, row, column=column)


def _checked(
    session: Session, publication: Publication, demand: Demand, rows: sql.Composable
) -> Sequence[Any]:
    """Check a model by its function, in a table of the distinct rows of persons."""
    persons = publication.persons
    session.pg.execute(template("proofs.create_persons", persons=persons, rows=rows))
    table = sql.SQL("{}::regclass").format(sql.Literal(persons.as_string(session.pg)))
    found = session.one(model_statement(table, demand, trees=publication.trees))
    session.pg.execute(sql.SQL("DROP TABLE {}").format(persons))
    return found


def result_of_persons(demand: Demand, row: Sequence[Any], *, column: str) -> CheckResult:
    """Convert a row of ``persons_statement`` into a result for that column."""
    required, least, most, classes, below, above, members = row
    at_most = MODELS[demand.spec.name].bound is Bound.AT_MOST
    failing, achieved = (above, most) if at_most else (below, least)
    figures = required, achieved, classes, failing, members
    return CheckResult(demand.spec.name, column, *(*figures, verdict(classes, failing)))


def result_of_rows(demand: Demand, row: Sequence[Any], *, column: str) -> CheckResult:
    """Convert a row of the check of a model into a result for that column."""
    *figures, found = row
    return CheckResult(demand.spec.name, column, *(*figures, Verdict(found)))


def persons_statement(
    persons: sql.Composable, demand: Demand, *, subject: str, run: sql.Composable | None = None
) -> sql.Composed:
    """Compose the check of a table of persons, with the columns of ``proofs.prove_persons``.

    run: a column of the table, to judge the persons of each run by themselves.
    """
    quasi = identifiers(demand.quasi)
    number = sql.SQL("dense_rank() OVER (ORDER BY {})").format(quasi)
    model = model_of(demand.spec)
    assert model.of_persons is not None  # noqa: S101 - only for models with a definition for persons
    return template(
        "proofs.prove_persons",
        persons=persons,
        **{"class": number if run is None else class_in_run(run, quasi)},
        **by_run(is_wanted=run is not None),
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
    found = []
    for one in publications:
        by, k = f"{one.policy.subject} by all tables", sql.Literal(one.policy.k)
        result = _of_k(by, session.one(template("proofs.prove_cells", k=k, cells=cells)))
        join = sql.SQL("\n   JOIN {} AS c ON c.person = {}").format(cells, _person(one))
        apart = _Apart(sql.Identifier("c", "cell"), join)
        found.append((*prove_persons(session, one, by=by, apart=apart), result))
    session.pg.execute(sql.SQL("DROP TABLE {}").format(cells))
    return found


def _person(publication: Publication) -> sql.Composable:
    column = publication.info.column(publication.policy.subject or "")
    return equal_text(column, sql.Identifier("s", column.name))


def _members(publication: Publication, number: int) -> sql.Composed:
    by_number = publication.policy.rows_per_subject is not None
    return template(
        "proofs.cell_members",
        person=_person(publication),
        part=sql.Literal(number),
        times=sql.SQL("count(*)" if by_number else "''"),
        **_joined(publication),
    )


def require_unique(session: Session, publication: Publication) -> None:
    """Raise PolicyError if two rows that were read have the same key, or one has none.

    An index may be corrupt, for example after a collation upgrade. Copies of a person would count
    as several, and a suppressed row could be published in the place of one with the same key.
    """
    asked = [(publication.rows, partial(identifiers, publication.key_columns))]
    if publication.reading == publication.stage:
        asked.append((publication.stage, partial(_keys, publication)))
    with at_once(session.pg):
        found = [session.pg.execute(_proof_by_key(publication, *one)) for one in asked]
    if any(proof.fetchone() != (True,) for proof in found):
        raise _no_key(publication.info, publication.policy)


def _keys(publication: Publication, *, of: str) -> sql.Composed:
    return sql.SQL(", ").join(publication.keys(of=of))


def _proof_by_key(
    publication: Publication, rows: sql.Composable, keys: Callable[..., sql.Composable]
) -> sql.Composed:
    """Compose the proof of keys, sorted first if they are integers, which makes it faster."""
    columns = map(publication.info.column, publication.info.primary_key)
    if all(column.kind is ColumnKind.INTEGER for column in columns):
        rows = template("proofs.sorted_by_keys", rows=rows, keys=keys(of="o"))
    return _proof(rows, keys(of="r"))


def require_key(
    session: Session, publication: Publication, rows: sql.Composable, keys: sql.Composable
) -> None:
    """Raise PolicyError if two rows ``r`` of a relation have the same key, or one has none."""
    if session.pg.execute(_proof(rows, keys)).fetchone() != (True,):
        raise _no_key(publication.info, publication.policy)


def require_distinct(session: Session, info: TableInfo, policy: Policy) -> None:
    """Raise PolicyError if two rows that meet the policy's conditions have the same key."""
    rows = sql.SQL("(SELECT * FROM {} WHERE {})").format(
        identity.readable(session, info), selected(policy, info)
    )
    proof = _proof(rows, identifiers(info.primary_key, of="r"))
    if identity.harmless(session, proof).fetchone() != (True,):
        raise _no_key(info, policy)


def _no_key(info: TableInfo, policy: Policy) -> PolicyError:
    columns = ", ".join(map(quote_identifier, info.primary_key))
    hint = f"REINDEX TABLE {info.name}, which names what is double"
    if policy.key:
        hint = "name more columns, or others, in key of the policy"
    return PolicyError(
        f"the key of {info.name} ({columns}) does not tell its rows apart: several rows have the"
        " same key, or one is NULL",
        hint=hint,
    )


def _proof(rows: sql.Composable, keys: sql.Composable) -> sql.Composed:
    return template("proofs.prove_keys", rows=rows, keys=keys)


# What values and means compare as, and by how much rounding moves a mean of that kind.
_EXACT = {
    ColumnKind.INTEGER: "{}::pg_catalog.numeric",
    ColumnKind.DECIMAL: "{}::pg_catalog.numeric",
    ColumnKind.FLOAT: "{}::pg_catalog.text::pg_catalog.numeric",
}
_HALF_A_SECOND = sql.SQL("interval '500 milliseconds'")
_OUTSIDE = """\
count(*) FILTER (WHERE ({mean} BETWEEN {least} - {rounding} AND {greatest} + {rounding}) IS NOT TRUE
                 AND num_nonnulls({mean}, {least}) > 0)"""


def require_means_within(session: Session, publication: Publication) -> None:
    """Raise DatabaseError if a mean is outside of its class's values, read from the source."""
    rules = publication.policy.means
    if not rules:
        return
    info = publication.info
    reading = publication.stage if info.is_computed else identity.readable(session, info)
    ends = (end for i, rule in enumerate(rules) for end in _ends(i, info.column(rule.column)))
    statement = template(
        "proofs.means_outside",
        outside=sql.SQL(", ").join(_outside(publication, i, rule) for i, rule in enumerate(rules)),
        ends=sql.SQL(", ").join(ends),
        source=reading,
        rows=publication.rows,
        groups=publication.groups,
        join=publication.join,
    )
    found = identity.harmless(session, statement).fetchone() or ()
    problems = [
        f"{count:,} published means of column {quote_identifier(rule.column)}"
        for rule, count in zip(rules, found, strict=True)
        if count
    ]
    if problems:
        raise DatabaseError(
            f"{' and '.join(problems)} lie outside of the values of their classes;"
            " nothing was published",
            hint='recoding = "interval" publishes the column; this is a defect of dbanon',
        )


def _ends(number: int, column: ColumnInfo) -> Iterator[sql.Composed]:
    exact = sql.SQL(_EXACT.get(column.kind, "{}"))
    for call, name in (("min({})", f"least_{number}"), ("max({})", f"greatest_{number}")):
        end = exact.format(sql.SQL(call).format(sql.Identifier("s", column.name)))
        yield sql.SQL("{} AS {}").format(end, sql.Identifier(name))


def _outside(publication: Publication, number: int, rule: ColumnRule) -> sql.Composed:
    kind = publication.info.column(rule.column).kind
    rounding: sql.Composable = _HALF_A_SECOND
    if kind is ColumnKind.DATE:
        rounding = sql.Literal(0)
    elif not kind.is_moment:
        rounding = sql.SQL("5e-{}").format(sql.Literal(rule.decimals(kind) + 1))
    place = [one.column for one in publication.policy.with_role(Role.QUASI)].index(rule.column)
    return sql.SQL(_OUTSIDE).format(
        mean=sql.Identifier("g", f"q{place + 1}"),
        least=sql.Identifier("c", f"least_{number}"),
        greatest=sql.Identifier("c", f"greatest_{number}"),
        rounding=rounding,
    )


def describe_population(
    session: Session, info: TableInfo, policy: Policy, *, n_rows: int
) -> TableInfo:
    """Describe the population of a policy; raises PolicyError if it does not fit the table."""
    if policy.population is None:
        raise PolicyError("the policy names no population", hint="--population schema.table")
    found = _locked(session, policy.population)
    problems = [*_problems(session, found), *_violations(info, found, policy)]
    if not problems:
        identity.admit(session, found)
        if (rows := catalog.count_rows(session, found)) < n_rows:
            problems.append(f"it has {rows:,} rows, fewer than the {n_rows:,} of {info.name}")
    if problems:
        raise PolicyError(
            f"{found.name} is not the population of {info.name}: {'; '.join(problems)}",
            hint=command("dbanon inspect", found.name),
        )
    return found


def admitted_population(session: Session, name: TableName) -> TableInfo:
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


def _violations(info: TableInfo, found: TableInfo, policy: Policy) -> Iterator[str]:
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


def prove_population(
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


def prove_population_again(
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
        return prove_population(session, info, policy, report, versions=release.taxonomies)
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
        if [*_problems(session, found), *_violations(source, found, release.policy)]:
            return False  # not locked either: locking a view opens it
        admitted_population(session, release.policy.population)
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
