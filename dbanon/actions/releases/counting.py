"""Publish noisy counts of a table, next to a release of it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from dbanon.actions.preparation.loading import (
    Loaded,
    require_approved,
    require_no_warnings,
    unapproved,
    warnings_of_rows,
)
from dbanon.actions.publish import publishing
from dbanon.actions.releases.released_data import served
from dbanon.anonymization.encoding.encode import encode
from dbanon.anonymization.masking.noise import draw, within
from dbanon.db import catalog, identity, rights, transfer
from dbanon.db.metadata import spending, store
from dbanon.db.proofs.subjects import require_distinct
from dbanon.db.releases import companion_relations, relations
from dbanon.db.releases.companion_relations import COUNTS
from dbanon.domain.errors import ConfigError, PolicyError, Unsatisfiable
from dbanon.domain.messages import set_aside_in_words, unaccounted_in_words, unaccounted_remedy
from dbanon.domain.notices import Notice, Topic
from dbanon.domain.policy import ColumnRule, Policy, Role
from dbanon.domain.policy_warning import Code
from dbanon.domain.release import NoisyCounts, Release, ReleaseKind
from dbanon.domain.table import TableInfo, TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.formats.document_reader import did_you_mean
from dbanon.formats.support import Mode, require
from dbanon.request import Request
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dbanon.db.session import Session
    from dbanon.domain.assignment import EncodedColumn

_MOST_CELLS = 100_000
_LEAST_EPSILON, _MOST_EPSILON = 0.001, 10.0
_SHARE = 0.95
PERSONS = "persons"
"""The column of the counts."""


def count(
    relation: str | TableName,
    *,
    by: Sequence[str],
    epsilon: float,
    dry_run: bool = False,
    settings: Settings | None = None,
) -> NoisyCounts:
    """Publish the noisy number of persons for each combination of values.

    relation: a served release; its readers can read the counts, in the relation with the suffix
    ``_counts``; by: columns with a taxonomy, an order or a type that lists all values; epsilon: the
    amount to spend of the policy's ``budget``; dry_run: count and spend nothing, and return the
    cost.

    Counts persons that meet the policy's ``where`` at the moment. Each count has two-sided
    geometric noise: one person more or less changes the probability of a result by at most
    exp(epsilon). Raises PolicyError without a budget or for other columns, Unsatisfiable beyond the
    budget, ConfigError for an epsilon below 0.001 or above 10, and for a relation without a
    release.
    """
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:  # NaN is not, either
        raise ConfigError(
            f"epsilon is {_LEAST_EPSILON:g} to {_MOST_EPSILON:g}, and not {epsilon:g}",
            hint="--epsilon 0.1; the more, the less noise, and the sooner the budget is spent",
        )
    settings = settings or Settings.load()
    release = served(relation, settings)
    asked = Request.from_ledger(release.overrides)
    of_table = replace(asked, kind=ReleaseKind.TABLE, grants=(), dataset=())
    request = replace(of_table, dry_run=dry_run, settings=settings)
    with publishing([release.table], request) as (session, found):
        return _count(session, found[0], release, by, epsilon=epsilon, dry_run=dry_run)


def _count(
    session: Session,
    loaded: Loaded,
    release: Release,
    by: Sequence[str],
    *,
    epsilon: float,
    dry_run: bool,
) -> NoisyCounts:
    policy, info = loaded.policy.completed(loaded.info), loaded.info
    if not dry_run:
        require_approved([unapproved(loaded, Request())])
    rules = _rules(session, loaded, by)
    spent = _spent(session, release, info) + _exact(epsilon)
    _require_budget(policy, info, spent=spent, epsilon=epsilon)
    columns = _encoded(session, loaded, rules)
    domains = [_domain(column) for column in columns]
    cells = prod(len(codes) for codes, _ in domains)
    if cells > _MOST_CELLS:
        raise Unsatisfiable(
            f"there are {cells:,} combinations of these columns, and {_MOST_CELLS:,} are the most",
            hint="count by fewer columns, or give them at_least, a number of levels",
        )
    notes: tuple[Notice, ...] = ()
    if not dry_run:
        fraction, exact = Fraction(_exact(epsilon)), _exact_counts(columns, domains)
        noisy = [number + draw(fraction) for number in exact.ravel().tolist()]
        notes = _publish(session, release, domains, by=by, noisy=noisy, epsilon=epsilon)
        spending.spend(session, info, epsilon=_exact(epsilon), columns=by)
    return NoisyCounts(
        relation=_name(release),
        table=info.name,
        by=tuple(by),
        cells=cells,
        epsilon=epsilon,
        spent=float(spent),
        budget=policy.budget or 0.0,
        within=within(_SHARE, epsilon=epsilon),
        notes=notes,
    )


def _exact(epsilon: float) -> Decimal:
    return Decimal(repr(float(epsilon)))


def _name(release: Release) -> TableName:
    return COUNTS.name(release.relation)


def _spent(session: Session, release: Release, info: TableInfo) -> Decimal:
    """Return the budget spent on a table; raises Unsatisfiable for counts without an account."""
    name = _name(release)
    if name in companion_relations.unaccounted_counts(session):
        raise Unsatisfiable(unaccounted_in_words(name), hint=unaccounted_remedy(name))
    return spending.spent(session, info)


def _require_budget(policy: Policy, info: TableInfo, *, spent: Decimal, epsilon: float) -> None:
    if policy.budget is None:
        raise PolicyError(
            f"the policy of {info.name} has no budget for counts with noise",
            hint="budget = 1.0 in the policy, then: "
            + command("dbanon policy set", info.name, options="--file FILE"),
        )
    if spent.is_infinite():
        raise Unsatisfiable(
            f"the spent budget of {info.name} is lost, so no more counts are published",
            hint="restore the rows of dbanon.spending: dbanon doctor",
        )
    if spent > _exact(policy.budget):
        left = _exact(policy.budget) - (spent - _exact(epsilon))
        raise Unsatisfiable(
            f"epsilon {epsilon:g} is more than is left of the budget of {info.name}:"
            f" {max(left, Decimal(0)).normalize():f} of {policy.budget:g}",
            hint="ask for less, or go on with the counts that are published: nothing that is spent"
            " comes back",
        )


def _require_one_row(session: Session, loaded: Loaded) -> None:
    """Raise PolicyError if a person may have several rows, by any policy of the table."""
    info = loaded.info
    for name in loaded.names:
        if (stored := store.load_stored(session, info.name, name)) is not None:
            require(Mode.COUNTS, Request().for_table(stored.policy, info))
    require_distinct(session, info, loaded.policy)


def _rules(session: Session, loaded: Loaded, by: Sequence[str]) -> list[ColumnRule]:
    """Return the rules of the columns, each with a declared domain; raises PolicyError."""
    _require_one_row(session, loaded)
    policy, info = loaded.policy.completed(loaded.info), loaded.info
    described = {rule.column: rule for rule in policy.with_orders(info).columns}
    if not by or len(set(by)) < len(by) or PERSONS in by:
        raise PolicyError(
            f"counts are by one column or more, each of them once, and none named {PERSONS}",
            hint="--by sex --by chapter",
        )
    rules = []
    for name in by:
        if name not in described:
            near = did_you_mean(name, described)
            raise PolicyError(f"{info.name} has no column {quote_identifier(name)}{near}")
        rules.append(_rule(described[name], info))
    return rules


def _rule(rule: ColumnRule, info: TableInfo) -> ColumnRule:
    if info.column(rule.column).base_type == "bool":
        rule = replace(rule, order=("false", "true"), taxonomy=None)
    if rule.taxonomy is None and rule.order is None:
        raise PolicyError(
            f"nothing but its rows says which values column {quote_identifier(rule.column)} has,"
            " and a value that is counted shows that somebody has it",
            hint='give it a taxonomy, or order = ["first", "second"], with all values there may be',
        )
    kept = None if rule.taxonomy is None else rule.at_least
    return replace(
        rule,
        role=Role.QUASI,
        recoding=None,
        at_least=kept,
        on_new_value=None,
        bands=None,
        top=None,
        bottom=None,
        pooled=None,
        keep=False,
    )


def _encoded(
    session: Session, loaded: Loaded, rules: Sequence[ColumnRule]
) -> Sequence[EncodedColumn]:
    info = loaded.info
    counted = Policy(loaded.policy.table, tuple(rules), where=loaded.policy.where)
    source = transfer.read(session, info, counted)
    found = warnings_of_rows(session, counted, info, source.columns)
    require_no_warnings([warning for warning in found if warning.code is Code.NO_SUBJECT])
    kinds = {column.name: column.kind for column in info.columns}
    return encode(source.columns, counted, kinds=kinds, taxonomies=loaded.taxonomies).quasi


def _domain(column: EncodedColumn) -> tuple[NDArray[np.int64], list[str | None]]:
    """Return all possible codes of a column, with the label of each, NULL last."""
    codes = np.arange(column.size)
    if column.cells is not None and column.taxonomy is not None:
        codes = np.unique(column.taxonomy.leaf_lo[column.cells].astype(np.int64))
    labels = [str(label) for label in column.values[codes]]
    return np.append(codes, column.size), [*labels, None]


def _exact_counts(
    columns: Sequence[EncodedColumn], domains: Sequence[tuple[NDArray[np.int64], list[str | None]]]
) -> NDArray[np.int64]:
    shape = [len(codes) for codes, _ in domains]
    places = [
        np.searchsorted(codes, column.codes)
        for column, (codes, _) in zip(columns, domains, strict=True)
    ]
    flat = np.ravel_multi_index(places, shape)
    return np.bincount(flat, minlength=prod(shape)).reshape(shape)


def _publish(
    session: Session,
    release: Release,
    domains: Sequence[tuple[NDArray[np.int64], list[str | None]]],
    *,
    by: Sequence[str],
    noisy: Sequence[int],
    epsilon: float,
) -> tuple[Notice, ...]:
    """Publish the counts, and prove that their readers reach nothing else by them.

    Returns possible access paths, for review.
    """
    published = catalog.describe(session, release.relation)
    identity.require_release(session, published, release.data_id)
    cells = product(*(labels for _, labels in domains))
    rows = [(*cell, number) for cell, number in zip(cells, noisy, strict=True)]
    left = companion_relations.publish_counts(session, release.relation, by, rows, epsilon=epsilon)
    sources = relations.oids_of(session, release.sources)
    signs = rights.require_separation(session, published=published.oid, sources=sources)
    identity.require_admitted(session)
    notes = [sign.notice for sign in signs]
    if left is not None:
        message = f"relations that depend on {left} are empty from now on"
        hint = set_aside_in_words(_name(release), left)
        notes.append(Notice(Topic.SET_ASIDE, message, hint))
    return tuple(notes)
