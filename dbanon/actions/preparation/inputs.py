"""The tables of a publication, each with its policy in force, and a digest of all inputs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbanon.actions.preparation.loading import unapproved
from dbanon.db import catalog
from dbanon.db.metadata import ledger
from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.policy import K_ANONYMITY, ColumnRule, Policy, Role, anatomy_level
from dbanon.domain.table import ColumnKind, TableInfo, quote_identifier
from dbanon.formats import policies
from dbanon.formats.support import Mode, require
from dbanon.models.base import Scope
from dbanon.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.db.session import Session
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.domain.release import Release
    from dbanon.request import Request


@dataclass(frozen=True, eq=False, slots=True)
class InputTable:
    """A loaded table of a publication, with the policy in force.

    In a dataset ``policy`` and ``info`` include the quasi-identifiers of the persons, as the table
    is published; ``own`` is the policy of its own columns. versions: of each taxonomy; unapproved:
    why the policy must not be published, although the database demands approvals.
    """

    loaded: Loaded
    own: Policy
    policy: Policy
    info: TableInfo
    versions: Mapping[str, int]
    unapproved: PolicyWarning | None = None


def input_tables(loaded: Sequence[Loaded], request: Request) -> list[InputTable]:
    """Return a table, or the tables of a dataset, the persons first, with the policies in force.

    All tables of a dataset require the same k. Raises PolicyError, ConfigError.
    """
    members = _input_tables(loaded, request)
    return [replace(one, unapproved=unapproved(one.loaded, request)) for one in members]


def _input_tables(loaded: Sequence[Loaded], request: Request) -> list[InputTable]:
    if len(loaded) == 1:
        (one,) = loaded
        policy = in_force(one, request)
        return [InputTable(one, policy, policy, one.info, one.versions)]
    policies = [_of_persons(loaded[0], request)]
    policies += [_of_table(one, loaded[0], request) for one in loaded[1:]]
    k = max(policy.k for policy in policies)
    policies = [policy.with_k(k) for policy in policies]
    persons, shared = loaded[0].info, policies[0].with_role(Role.QUASI)
    found = [InputTable(loaded[0], policies[0], policies[0], persons, loaded[0].versions)]
    for one, own in zip(loaded[1:], policies[1:], strict=True):
        names = {name for rule in shared for name in (rule.column, *rule.published_as)}
        kept = _apart(own, one.info, persons, names=names)
        rules = {rule.column for rule in kept}
        columns = [persons.column(rule.column) for rule in shared]
        columns += [column for column in one.info.columns if column.name in rules]
        policy = replace(own, columns=(*shared, *kept))
        info = replace(one.info, columns=tuple(columns))
        found.append(InputTable(one, own, policy, info, {**loaded[0].versions, **one.versions}))
    return found


def _of_persons(loaded: Loaded, request: Request) -> Policy:
    """Return the policy of the table of the persons, whose subject is its key."""
    require(Mode.PERSONS, loaded.info)
    policy = in_force(loaded, replace(_asked(request, loaded.policy), rows_per_subject=None))
    for mode in (Mode.DATASET, Mode.PERSONS):
        require(mode, request.for_table(policy, loaded.info))
    return replace(policy, subject=loaded.info.primary_key[0])


def _of_table(loaded: Loaded, persons: Loaded, request: Request) -> Policy:
    """Return the policy of a table whose subject is a person."""
    info = loaded.info
    policy = in_force(loaded, _asked(request, loaded.policy))
    for mode in (Mode.DATASET, Mode.LINKED):
        require(mode, request.for_table(policy, info))
    column = info.column(policy.subject or "")
    key = persons.info.column(persons.info.primary_key[0])
    integers = column.kind is key.kind is ColumnKind.INTEGER
    if not integers and (column.base_schema, column.base_type) != (key.base_schema, key.base_type):
        raise ConfigError(
            f"{info.name}.{quote_identifier(column.name)} is no {key.base_type}, as"
            f" {persons.info.name}.{quote_identifier(key.name)} is",
            hint="the subject of each table refers to the key of the persons",
        )
    return policy


def _asked(request: Request, policy: Policy) -> Request:
    """Return the request for one table: models of sensitive values only if it has some."""
    if policy.with_role(Role.SENSITIVE):
        return request
    kept = tuple(m for m in request.specs if MODELS[m.name].scope is not Scope.SENSITIVE)
    return replace(request, l=None, models=kept)


def _apart(
    own: Policy, info: TableInfo, persons: TableInfo, *, names: set[str]
) -> tuple[ColumnRule, ...]:
    """Return the rules of a table without columns that the table of the persons has."""
    for rule in own.columns:
        shown = rule.published_as or rule.column in {own.subject, *info.primary_key}
        if shown and names.intersection((rule.column, *rule.published_as)):
            raise PolicyError(
                f"{own.table} and {persons.name} both have a column"
                f" {quote_identifier(rule.column)} to publish",
                hint="give it the role identifier in the policy of the table, or another name in a"
                " view",
            )
    if own.pseudonym in names:
        raise PolicyError(
            f"the pseudonym {quote_identifier(own.pseudonym)} of {own.table} is a column of"
            f" {persons.name} to publish",
            hint="choose another name for the pseudonym",
        )
    return tuple(rule for rule in own.columns if rule.column not in names)


def in_force(loaded: Loaded, request: Request) -> Policy:
    """Return the stored policy with the options of the request.

    Raises PolicyError without k, or without l for anatomy, ConfigError for a live view that guards
    cannot protect.
    """
    policy = request.over(loaded.policy)
    if policy.anatomy and (anatomy_level(policy) or 1) == 1:
        raise PolicyError(
            "l is not set, and anatomy promises nothing else", hint="pass --l 2, or more"
        )
    if not policy.anatomy and policy.model(K_ANONYMITY) is None:
        raise PolicyError("k is not set: neither by --k nor in the policy", hint="pass --k 5")
    if loaded.info.foreign and not request.allow_foreign:
        raise ConfigError(
            f"{loaded.info.name} reads the foreign table {loaded.info.foreign[0]}: who reads it"
            " where it is, and whether it stays the same, is not known here",
            hint="--allow-foreign, if that is as it should be",
        )
    if request.relation_kind.is_live:
        require(Mode.VIEW, request.for_table(policy, loaded.info))
    return policy


_SECRETLY = "dealt by the secret key: "  # the mark of releases by anatomy


def digest_of_rows(session: Session, info: TableInfo, policy: Policy) -> str:
    """Return a digest of all rows of a table, over the columns of a policy.

    It is stored, so it is no sum: the difference of two sums is the hash of a row that came.
    """
    rows = catalog.content_digest(session, info, sorted(policy.inputs | {*info.primary_key}))
    return hashlib.sha256(rows.encode()).hexdigest()


def fingerprint(
    session: Session,
    members: Sequence[InputTable],
    request: Request,
    *,
    of_rows: Sequence[str | None] = (),
) -> str:
    """Return a digest of all inputs of releases; equal digests mean that nothing changed.

    of_rows: what stands for the rows of each table, by default ``digest_of_rows``.
    """
    rows = of_rows or [None] * len(members)
    parts = [
        _digest(session, one, request, of_rows=known)
        for one, known in zip(members, rows, strict=True)
    ]
    return parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()


def _digest(session: Session, member: InputTable, request: Request, *, of_rows: str | None) -> str:
    from dbanon.db.proofs import subjects

    info, policy = member.loaded.info, member.own
    content = of_rows or digest_of_rows(session, info, policy)
    ordered = policies.to_document(policy.without_rest().with_orders(info))
    parts = [content, ordered, {**member.loaded.versions}, request.to_ledger()]
    if policy.population is not None:
        everybody = subjects.admitted_population(session, policy.population)
        quasi = sorted(rule.column for rule in policy.with_role(Role.QUASI))
        parts.append(catalog.content_digest(session, everybody, quasi))
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"{_SECRETLY}{digest}" if policy.anatomy else digest


_CLASSES = "classes:"


def of_classes(session: Session, digest: str, releases: Sequence[Release]) -> str:
    """Return a digest for incremental refreshes only: others can publish pending rows.

    It includes the last release of the other relations, whose persons a refresh publishes, too.
    """
    last = max((one.id for one in _others(session, releases)), default=0)
    return f"{_CLASSES}{last}:{digest}"


def last_of_classes(session: Session, releases: Sequence[Release]) -> int:
    """Return the last incremental release of the other relations, 0 for none."""
    others = _others(session, releases)
    grown = [one.id for one in others if one.fingerprint.startswith(_CLASSES)]
    return max(grown, default=0)


def _others(session: Session, releases: Sequence[Release]) -> list[Release]:
    """Return the served copies of the other relations of the first table."""
    if releases[0].kind.is_live:
        return []
    own = {one.relation for one in releases}
    served = ledger.releases(session, table=releases[0].table, served=True)
    return [one for one in served if one.relation not in own and not one.kind.is_live]


def is_dealt_by_seed(release: Release) -> bool:
    """Whether the buckets of a release were dealt by repeatable chance, as old versions did."""
    return release.policy.anatomy and _SECRETLY not in release.fingerprint
