"""Check tables with the same persons together, from their stored membership.

A reader of all releases of several tables can distinguish persons unless they were always in the
same classes of each. Such persons form a cell, which must be as safe as a class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from psycopg import sql

from dbanon.db.histories import cells, memory
from dbanon.db.histories.cells import CELLS
from dbanon.db.histories.memory import BEFORE
from dbanon.db.metadata import ledger
from dbanon.db.queries import query, template
from dbanon.domain.release import CellResult, Composition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbanon.db.histories.memory import Memory
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import CheckResult
    from dbanon.domain.table import TableName

    Relations = Mapping[TableName, TableName]
    """The relation of each table, that of the persons first."""

_LINKED = sql.Identifier("pg_temp", "history_linked")


def is_linked(session: Session, relations: Relations) -> bool:
    """Return True if all tables share a hash key and the first published all persons."""
    found = _of_series(session, relations)
    if not _of_one_key(found):
        return False
    memory.unpack(session, found)
    linked = _knows_all(session, found[0])
    memory.forget(session)
    return linked


def recall(
    session: Session,
    relations: Relations,
    *,
    new: Sequence[Publication] = (),
    before: bool = False,
) -> Composition:
    """Compute the combined disclosure of all releases in the series of some relations.

    new: releases to be served; before: exclude them, but check their requirements. The result is
    unknown unless ``is_linked``.
    """
    session.allow_memory()
    until = min(one.id for one in new) if before else None
    found = _of_series(session, relations, until=until)
    releases = tuple(sorted(number for known in found for number in known.relations))
    table, *others = relations
    composition = Composition(table, 0, releases, (), (), (), beside=tuple(others))
    if not before and all(len(known.relations) == 1 for known in found):
        return composition
    if not _of_one_key(found):
        return replace(composition, unknown=releases)
    memory.unpack(session, found)
    if _knows_all(session, found[0]):
        results, small = _judged(session, found, new, before=before)
        persons = results[0].result.n_rows if results else 0
        composition = replace(composition, results=results, persons=persons, small=small)
    else:
        composition = replace(composition, unknown=releases)
    memory.forget(session)
    return composition


def prove(session: Session, publications: Sequence[Publication]) -> list[tuple[CheckResult, ...]]:
    """Check the persons of each release, by class and by the classes of all tables.

    Only stored membership links rows of a copy to persons. publications: the table of persons
    first; all are stored, with as many rows of every class as the copies have.
    """
    session.allow_memory()
    found = [memory.of_series(session, one.info.name, one.view) for one in publications]
    memory.unpack(session, found)
    session.pg.execute(template("overlays.create_linked", linked=_LINKED))
    for part, (known, one) in enumerate(zip(found, publications, strict=True)):
        memory.rows(session, known, one.id, BEFORE)
        times = sql.SQL("count(*)" if one.policy.rows_per_subject is not None else "''")
        slots = {"linked": _LINKED, "rows": BEFORE, "part": sql.Literal(part), "times": times}
        session.pg.execute(template("overlays.link", **slots))
        memory.drop(session, BEFORE)
    every = [*range(len(found))]
    results = []
    for part, (known, one) in enumerate(zip(found, publications, strict=True)):
        subject = one.policy.subject or ""
        by = subject if one.policy.rows_per_subject is None else f"{subject} by number of rows"
        own = _proved(session, known, one, parts=[part], by=by)
        together = []
        if len(found) > 1:
            by = f"{subject} by all tables"
            together = _proved(session, known, one, parts=every, by=by)
        results.append((*own, *together))
    memory.drop(session, _LINKED)
    memory.forget(session)
    return results


def _proved(
    session: Session, known: Memory, publication: Publication, *, parts: Sequence[int], by: str
) -> list[CheckResult]:
    """Check one release's models for the cells of some tables."""
    slots = {"cells": CELLS, "linked": _LINKED, "parts": sql.Literal(list(parts))}
    session.pg.execute(template("overlays.linked_cells", **slots))
    of_k = replace(cells.of_persons(session, publication.policy.k), column=by)
    found = [
        replace(result, column=f"{result.column} by {by}")
        for result in _of_values(session, known, {publication.id: publication.policy})[
            publication.id
        ]
    ]
    memory.drop(session, CELLS)
    return [*found, of_k]


def _of_series(session: Session, relations: Relations, *, until: int | None = None) -> list[Memory]:
    return [
        memory.of_series(session, table, relation, until=until)
        for table, relation in relations.items()
    ]


def _of_one_key(found: Sequence[Memory]) -> bool:
    keys = {known.key for known in found}
    return len(keys) == 1 and None not in keys


def _knows_all(session: Session, persons: Memory) -> bool:
    """Return True if the person table ever published everyone in the other tables."""
    asked = {"releases": list(persons.relations)}
    return session.pg.execute(query("overlays.knows_all"), asked).fetchone() == (True,)


def _judged(
    session: Session, found: Sequence[Memory], new: Sequence[Publication], *, before: bool
) -> tuple[tuple[CellResult, ...], int]:
    """Check k and value models of all cells; count small ones as ``cells.of_releases``."""
    policies = [_policies(session, known, new) for known in found]
    entered = {number: policy for each in policies for number, policy in each.items()}
    if not entered:
        return (), 0
    memory.cells(session, CELLS)
    newest = max(entered)
    relation = next(k.relations[newest] for k in found if newest in k.relations)
    of_k, small = cells.of_releases(session, found, entered, asked=[one.policy for one in new])
    results = [CellResult(newest, relation, of_k)]
    for known, each in zip(found, policies, strict=True):
        for number, found_of in _of_values(session, known, each).items():
            results += [CellResult(number, known.relations[number], one) for one in found_of]
        for one in new if before else ():
            if one.info.name == known.table and each:
                results += _as_asked(session, known, each, one)
    memory.drop(session, CELLS)
    return tuple(results), small


def _policies(session: Session, known: Memory, new: Sequence[Publication]) -> dict[int, Policy]:
    """Return the policies of the stored releases of a table."""
    own = {one.id: one.policy for one in new if one.info.name == known.table}
    policies = ledger.policies_by_release(session, known.table, known=own.values()) | own
    return {number: policies[number] for number in known.relations if number in policies}


def _as_asked(
    session: Session, known: Memory, policies: Mapping[int, Policy], asked: Publication
) -> Iterator[CellResult]:
    """Check the earlier values of cells against the policy of a new release."""
    number = max(policies, key=lambda one: (known.relations[one] == asked.view, one))
    shown = cells.sensitive_columns(policies[number])
    both = [name for name in cells.sensitive_columns(asked.policy) if name in shown]
    for result in _of_values(session, known, {number: asked.policy}, sensitive=both)[number]:
        yield CellResult(asked.id, asked.view, result)


def _of_values(
    session: Session,
    known: Memory,
    policies: Mapping[int, Policy],
    *,
    sensitive: Sequence[str] | None = None,
) -> dict[int, list[CheckResult]]:
    """Check the cells by the published values of some columns."""
    named = {"schema": known.table.schema, "name": known.table.name}
    numbers = [row[0] for row in session.pg.execute(query("overlays.numbers"), named)]
    return cells.of_values(session, known, policies, numbers, sensitive=sensitive)
