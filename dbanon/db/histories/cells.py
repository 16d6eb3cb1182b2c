"""Count what the cells and the pairs of classes of some persons come to."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

from psycopg import sql

from dbanon.db.models.statements import demands
from dbanon.db.proofs.subjects import judge_persons, judge_rows
from dbanon.db.queries import query, template
from dbanon.domain.checks import CheckResult, Verdict
from dbanon.domain.composition import Against, Exposure
from dbanon.domain.policy import K_ANONYMITY, L_DIVERSITY, Role
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS
from dbanon.models.specs import arguments, sensitive_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from dbanon.db.histories.memory import Memory
    from dbanon.db.models.statements import Demand
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy

CELLS = sql.Identifier("pg_temp", "history_cells")
BEFORE = sql.Identifier("pg_temp", "history_before")
NOW = sql.Identifier("pg_temp", "history_now")
COUNTED = sql.Identifier("pg_temp", "history_counted")
_OVERLAY = sql.Identifier("pg_temp", "history_overlay")
_LEAST = 2  # values that a person is to have where a policy asks for no number of them


def of_persons(session: Session, k: int, count: sql.SQL | None = None) -> CheckResult:
    """Count the persons of every cell, by default of those in ``CELLS``."""
    row = session.pg.execute(count or query("overlays/count_cells"), {"k": k}).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    cells, smallest, failing, persons = row
    verdict = Verdict.FAILED if failing else Verdict.PASSED
    if not cells:
        verdict = Verdict.NOT_CHECKED
    return CheckResult(K_ANONYMITY, None, k, smallest, cells, failing, persons, verdict)


def of_releases(
    session: Session,
    known: Sequence[Memory],
    policies: Mapping[int, Policy],
    *,
    asked: Iterable[Policy] = (),
    count: sql.SQL | None = None,
) -> tuple[CheckResult, int]:
    """Judge every cell by the least k of the releases that ever showed its persons.

    policies: of each release of those known; count: as ``of_persons`` has it. Whoever has several
    releases is left with what the least of them promises. Returns also how many cells have fewer
    persons than the greatest k of all releases and of those ``asked`` for: a release adds none.
    """
    by_release = {number: policy.k for number, policy in policies.items()}
    most = max([*by_release.values(), *(policy.k for policy in asked)])
    found = of_persons(session, most, count)
    small = found.failing_classes
    if not small or set(by_release.values()) == {most}:
        return found, small
    first = {n: one.first(name) for one in known for n, name in one.relations.items()}
    promised = {
        "most": most,
        "releases": [*by_release],
        "relations": [first[number] for number in by_release],
        "ks": [*by_release.values()],
    }
    row = session.pg.execute(query("overlays/count_owed"), promised).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    failing, k, least = row
    if failing:
        return replace(found, required=k, achieved=least, failing_classes=failing), small
    required = min(by_release.values())
    return replace(found, required=required, failing_classes=0, verdict=Verdict.PASSED), small


def sensitive_columns(policy: Policy) -> list[str]:
    """Return the columns by whose values cells are judged."""
    return [rule.column for rule in policy.with_role(Role.SENSITIVE)]


def asked_of_values(
    policy: Policy, sensitive: Sequence[str] | None = None
) -> tuple[str, str, list[Demand]]:
    """Return what a policy asks of the values of cells, and two names that no column has.

    These are of a cell and of a person. sensitive: of these columns alone.
    """
    sensitive = sensitive_columns(policy) if sensitive is None else sensitive
    free = (name for i in count() if (name := f"c{i}") not in sensitive)
    cell, person = next(free), next(free)
    asked = [
        demand
        for demand in demands(policy.models, quasi=[cell], sensitive=sensitive, plain=True)
        if MODELS[demand.spec.name].scope is Scope.SENSITIVE
        and not MODELS[demand.spec.name].of_whole
        and demand.column in sensitive
    ]
    return cell, person, asked


def of_values(
    session: Session,
    policy: Policy,
    numbers: Collection[str],
    *,
    sensitive: Sequence[str] | None = None,
    cells: sql.Identifier = CELLS,
    known_as: str = "cell",
) -> Iterator[CheckResult]:
    """Yield what the cells achieve by the values that the release of ``BEFORE`` shows.

    numbers: the columns all of whose values are numbers; sensitive: those of the policy that the
    release shows, all by default; cells, known_as: the table and the column that hold the cells of
    persons.
    """
    sensitive = sensitive_columns(policy) if sensitive is None else sensitive
    cell, person, asked = asked_of_values(policy, sensitive)
    if not asked:
        return
    slots = {
        **_overlay(sensitive, numbers, cell=cell, person=person),
        "state": BEFORE,
        "cells": cells,
        "known_as": sql.Identifier(known_as),
    }
    session.pg.execute(template("overlays/overlay", **slots))
    several = session.pg.execute(query("overlays/has_several")).fetchone() == (True,)
    for demand in asked:
        if several and MODELS[demand.spec.name].of_persons and demand.quasi == (cell,):
            yield judge_persons(session, _OVERLAY, demand, subject=person, column=demand.column)
        else:
            yield judge_rows(session, _OVERLAY, demand, column=demand.column, trees={})
    session.pg.execute(sql.SQL("DROP TABLE {}").format(_OVERLAY))


def of_first(session: Session, policy: Policy, numbers: Collection[str]) -> Iterator[CheckResult]:
    """Yield what the classes of the first release of a series achieve, as ``of_values`` does."""
    sensitive = sensitive_columns(policy)
    cell, person, asked = asked_of_values(policy, sensitive)
    if not asked:
        return
    slots = _overlay(sensitive, numbers, cell=cell, person=person)
    session.pg.execute(template("overlays/overlay_first", **slots))
    for demand in asked:
        yield judge_rows(session, _OVERLAY, demand, column=demand.column, trees={})
    session.pg.execute(sql.SQL("DROP VIEW {}").format(_OVERLAY))


def _overlay(
    sensitive: Sequence[str], numbers: Collection[str], *, cell: str, person: str
) -> dict[str, sql.Composable]:
    """Compose what the overlay is called and has: two columns, and the values and their names."""
    columns = [
        sql.SQL(", (v.value ->> {}){} AS {}").format(
            sql.Literal(name),
            sql.SQL("::numeric" if name in numbers else ""),
            sql.Identifier(name),
        )
        for name in sensitive
    ]
    names = [sql.SQL(", {}").format(sql.Identifier("u", name)) for name in sensitive]
    return {
        "overlay": _OVERLAY,
        "cell": sql.Identifier(cell),
        "person": sql.Identifier(person),
        "columns": sql.SQL("").join(columns),
        "names": sql.SQL("").join(names),
    }


def against(
    session: Session,
    known: Memory,
    earlier: int,
    policies: Mapping[int, Policy],
    *,
    now: sql.Identifier = NOW,
    shown: sql.Identifier = BEFORE,
) -> Against:
    """Hold the newest release, in ``now``, against the one in ``BEFORE``.

    shown: all that the latter shows of the classes of the persons in it.
    """
    newest = max(policies)
    k = max(policies[earlier].k, policies[newest].k)
    states = {"before": BEFORE, "now": now}
    row = session.pg.execute(template("overlays/compare", k=sql.Literal(k), **states)).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    persons, smallest, below, in_both = row
    exposures = []
    for column, l in required_of(policies[earlier], policies[newest]).items():
        slots = {"column": sql.Literal(column), "l": sql.Literal(l)}
        asked = template("overlays/intersect", **states, **slots, shown=shown)
        few, to_one = session.pg.execute(asked).fetchone() or (0, 0)
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


def first_pair(session: Session, known: Memory, policy: Policy) -> Against:
    """Hold the first release of a series against itself, by what ``first/count`` counted.

    Everybody has one row in it and was never in another class, so that the classes are the cells.
    """
    ((number, relation),) = known.relations.items()
    row = session.pg.execute(query("first/compare"), {"k": policy.k}).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    persons, smallest, below = row
    exposures = []
    for column, l in required_of(policy, policy).items():
        asked = {"column": column, "l": l}
        few, to_one = session.pg.execute(query("first/intersect"), asked).fetchone() or (0, 0)
        exposures.append(Exposure(column, l, few, to_one))
    return Against(
        release=number,
        relation=relation,
        persons=persons,
        in_both=persons,
        required=policy.k,
        smallest=smallest or 0,
        below=below,
        exposures=tuple(exposures),
    )


def required_of(earlier: Policy, newest: Policy) -> dict[str, int]:
    """Return the sensitive columns of two releases, each with the values that are required."""
    before = {rule.column for rule in earlier.with_role(Role.SENSITIVE)}
    both = [r.column for r in newest.with_role(Role.SENSITIVE) if r.column in before]
    required = dict.fromkeys(both, _LEAST)
    for spec in newest.models:
        if spec.name == L_DIVERSITY:
            asked = set(sensitive_of(spec, both)) & required.keys()
            required |= dict.fromkeys(asked, cast("int", arguments(spec)["l"]))
    return required
