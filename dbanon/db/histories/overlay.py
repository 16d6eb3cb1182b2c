"""Prove models of all releases of a table together.

A reader of several releases can tell persons apart who were not always in the same classes. A cell
is those who always were, and is to be as safe as a class (algorithm reference, section 7.2). Models
that compare a class with the whole are not asked of cells: the whole is another one every time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

from psycopg import sql

from dbanon.db.histories import memory
from dbanon.db.metadata import ledger
from dbanon.db.models.statements import demands
from dbanon.db.proofs.subjects import judge_persons, judge_rows
from dbanon.db.queries import query, template
from dbanon.domain.checks import CheckResult, Verdict
from dbanon.domain.composition import Against, CellResult, Composition, Exposure
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, Role
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import arguments, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dbanon.db.histories.memory import Memory
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableName

_CELLS = sql.Identifier("pg_temp", "history_cells")
_BEFORE = sql.Identifier("pg_temp", "history_before")
_NOW = sql.Identifier("pg_temp", "history_now")
_OVERLAY = sql.Identifier("pg_temp", "history_overlay")
_LEAST = 2  # values that a person is to have where a policy asks for no number of them


def remember(session: Session, publication: Publication) -> Composition:
    """Remember a table release that is about to be served; compare it with all before."""
    known = memory.remember(session, publication)
    return _composed(session, known, {publication.id: publication.policy})


def recall(
    session: Session,
    table: TableName,
    *,
    live: Mapping[int, Policy] | None = None,
    until: int | None = None,
) -> Composition:
    """Compare all releases of a table that are remembered.

    live: a release that is about to be served live, by number, which nothing can be compared with;
    until: leave out this release, and what came after it.
    """
    return _composed(session, memory.recall(session, table, until=until), live or {})


def _composed(session: Session, known: Memory, new: Mapping[int, Policy]) -> Composition:
    entered = ledger.releases(session, table=known.table)
    policies = {release.id: release.policy for release in entered} | dict(new)
    of_known = {number: policies[number] for number in known.relations if number in policies}
    unknown = sorted(policies.keys() - of_known.keys()) if len(policies) > 1 else []
    found = Composition(
        table=known.table,
        persons=0,
        releases=tuple(of_known),
        unknown=tuple(unknown),
        results=(),
        against=(),
    )
    if len(of_known) > 1:
        found = _compared(session, known, of_known, found)
    memory.forget(session)
    return found


def _compared(
    session: Session, known: Memory, policies: Mapping[int, Policy], found: Composition
) -> Composition:
    session.pg.execute(query("overlays/cells"))
    session.pg.execute(sql.SQL("ANALYZE {}").format(_CELLS))
    newest = max(policies)
    k = max(policy.k for policy in policies.values())
    of_k, persons = _of_k(session, k)
    results = [CellResult(newest, known.relations[newest], of_k)]
    named = _named(known.table)
    numbers = {row[0] for row in session.pg.execute(query("overlays/numbers"), named)}
    against = []
    memory.rows(session, known, newest, _NOW)
    for number, policy in policies.items():
        memory.rows(session, known, number, _BEFORE)
        results += [
            CellResult(number, known.relations[number], result)
            for result in _of_values(session, policy, numbers)
        ]
        if number != newest:
            against.append(_against(session, known, number, policies))
        _drop(session, _BEFORE)
    _drop(session, _NOW)
    _drop(session, _CELLS)
    return replace(found, persons=persons, results=tuple(results), against=tuple(against))


def _of_k(session: Session, k: int) -> tuple[CheckResult, int]:
    """Count the persons of every cell; return how many there are as well."""
    row = session.pg.execute(query("overlays/count_cells"), {"k": k}).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    cells, smallest, failing, persons = row
    verdict = Verdict.FAILED if failing else Verdict.PASSED
    if not cells:
        verdict = Verdict.NOT_CHECKED
    return CheckResult(K_ANONYMITY, None, k, smallest, cells, failing, persons, verdict), persons


def _of_values(session: Session, policy: Policy, numbers: Collection[str]) -> Iterator[CheckResult]:
    """Yield what the cells achieve by the values that the release of ``_BEFORE`` shows.

    numbers: the columns all of whose values are numbers.
    """
    sensitive = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    cell, person = _unused(sensitive)
    asked = [
        demand
        for demand in demands(policy.models, quasi=[cell], sensitive=sensitive, plain=True)
        if MODELS[demand.spec.name].scope is Scope.SENSITIVE
        and not MODELS[demand.spec.name].of_whole
    ]
    if not asked:
        return
    overlay = _overlay(policy.table, sensitive, numbers, cell=cell, person=person)
    session.pg.execute(overlay)
    several = session.pg.execute(query("overlays/has_several")).fetchone() == (True,)
    for demand in asked:
        if several and MODELS[demand.spec.name].of_persons and demand.quasi == (cell,):
            yield judge_persons(session, _OVERLAY, demand, subject=person, column=demand.column)
        else:
            yield judge_rows(session, _OVERLAY, demand, column=demand.column, trees={})
    _drop(session, _OVERLAY)


def _overlay(
    table: TableName,
    sensitive: Collection[str],
    numbers: Collection[str],
    *,
    cell: str,
    person: str,
) -> sql.Composed:
    """Compose the table of what was published of each person, by cell."""
    columns = [
        sql.SQL(", (v.value ->> {}){} AS {}").format(
            sql.Literal(name),
            sql.SQL("::numeric" if name in numbers else ""),
            sql.Identifier(name),
        )
        for name in sensitive
    ]
    names = [sql.SQL(", {}").format(sql.Identifier("u", name)) for name in sensitive]
    return template(
        "histories/overlay",
        overlay=_OVERLAY,
        cell=sql.Identifier(cell),
        person=sql.Identifier(person),
        columns=sql.SQL("").join(columns),
        names=sql.SQL("").join(names),
        state=_BEFORE,
        table_schema=sql.Literal(table.schema),
        table_name=sql.Literal(table.name),
    )


def _named(table: TableName) -> dict[str, str | None]:
    return {"schema": table.schema, "name": table.name}


def _against(
    session: Session, known: Memory, earlier: int, policies: Mapping[int, Policy]
) -> Against:
    """Hold the newest release, in ``_NOW``, against the one in ``_BEFORE``."""
    newest = max(policies)
    k = max(policies[earlier].k, policies[newest].k)
    row = session.pg.execute(query("overlays/compare"), {"k": k}).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    persons, smallest, below, in_both = row
    exposures = []
    for column, l in _both(policies[earlier], policies[newest]).items():
        asked = {"column": column, "l": l, **_named(known.table)}
        few, to_one = session.pg.execute(query("overlays/intersect"), asked).fetchone() or (0, 0)
        exposures.append(Exposure(column, l, few, to_one))
    return Against(
        release=earlier,
        relation=known.relations[earlier],
        persons=persons,
        in_both=in_both,
        required=k,
        smallest=smallest or 0,
        below=below,
        exposures=tuple(exposures),
    )


def _both(earlier: Policy, newest: Policy) -> dict[str, int]:
    """Return the sensitive columns of two releases, each with the values that are required."""
    before = {rule.column for rule in earlier.with_role(Role.SENSITIVE)}
    both = [r.column for r in newest.with_role(Role.SENSITIVE) if r.column in before]
    required = dict.fromkeys(both, _LEAST)
    for spec in newest.models:
        if spec.name == L_DIVERSITY:
            asked = set(sensitive_of(spec, both)) & required.keys()
            required |= dict.fromkeys(asked, cast("int", arguments(spec)["l"]))
    return required


def _drop(session: Session, table: sql.Identifier) -> None:
    session.pg.execute(sql.SQL("DROP TABLE {}").format(table))


def _unused(names: Collection[str]) -> tuple[str, str]:
    """Return two names that no column has."""
    free = (name for i in count() if (name := f"c{i}") not in names)
    return next(free), next(free)
