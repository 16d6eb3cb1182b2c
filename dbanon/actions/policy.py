"""Manage publication policies."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.actions.inspect import inspect
from dbanon.actions.preparation import loading
from dbanon.actions.preparation.loading import (
    find_published,
    load,
    looking,
    no_policy,
    require_no_warnings,
    warnings_of_table,
)
from dbanon.db import catalog, identity
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import current_session, require_current
from dbanon.db.session import Session, connect
from dbanon.domain.errors import DbanonError, PolicyError
from dbanon.domain.messages import DIGITS
from dbanon.domain.notices import Notice, Topic
from dbanon.domain.outcomes import Operation
from dbanon.domain.policy import (
    DEFAULT_NAME,
    Approval,
    Difference,
    Event,
    Policy,
    Role,
    StoredPolicy,
    Version,
    policy_option,
)
from dbanon.domain.table import ColumnKind, TableInfo, TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.formats import policies
from dbanon.formats.policies import differences, draft, to_document
from dbanon.request import Request
from dbanon.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dbanon.actions.inspect import Inspection, Profile
    from dbanon.domain.assignment import Taxonomy
    from dbanon.domain.policy_warning import PolicyWarning
    from dbanon.domain.release import Release

_MOST_VALUES = 1_000  # of a column are looked up in its taxonomy
_SAMPLED = 20_000  # rows whose sensitive values are counted
_POOLS = 10  # the least number of pools that a table should have rows for
Given = str | Path
"""A stored policy by its name, or a file by its path."""


def set_policy(
    table: str | TableName | None,
    policy: str | Path | Policy,
    *,
    name: str | None = None,
    shown: str | None = None,
    strict: bool = False,
    warn: Callable[[PolicyWarning], None] | None = None,
    settings: Settings | None = None,
) -> Policy:
    """Check a policy (a value, or the path of a TOML file) against its table and store it.

    table: None for that of the policy. ``name``: by default that of the policy, or ``default``; an
    existing policy of that name is replaced: with ``shown``, a ``policies.digest``, only that one.
    The present shape of the table is stored, too: later changes are drift. ``warn`` gets each
    warning about the policy, for which columns that are published unchanged are counted; with
    ``strict`` a warning prevents storing.

    Raises PolicyError with all problems, ConfigError if the file cannot be read, and TableNotFound.
    """
    given = _given(policy, name)
    table = TableName.parse(table or given.table)
    with connect(settings or Settings.load(), writes=True) as session:
        with session.transaction(read_only=True, keep=False):
            require_current(session)
            before, given = _checked(session, given, table, strict=strict, warn=warn)
        with session.transaction(operation=_operation(table, given.name, "stored")):
            info, given, known = _fitted(session, given, before.name)
            identity.require_same(before, info)
            store.save_policy(session, given)  # first: concurrent ones wait here
            if shown is not None:
                _require_replaced(session, given, shown)
            store.note_stored(session, given)
            now = store.baseline(session, info, known)
            store.save_baseline(session, info.name, now, name=given.name)
    return given


def _require_replaced(session: Session, given: Policy, shown: str) -> None:
    """Raise PolicyError unless the last version of a policy, or none, has a digest."""
    versions = store.policy_versions(session, given.table, name=given.name)
    newest = max(versions, key=lambda one: one.version, default=None)
    document = None if newest is None else newest.document
    stored = [] if document is None else [policies.from_document({**document, "name": given.name})]
    if policies.digest(*stored) != shown:
        raise loading.changed_since(given.table)


def served_otherwise(policy: Policy, *, settings: Settings | None = None) -> list[Release]:
    """Return the served releases of a stored policy whose classes were made by another one."""
    with current_session(settings or Settings.load()) as session:
        served = ledger.releases(session, table=policy.table, served=True)
    return [r for r in served if r.policy_name == policy.name and is_outdated(r, policy)]


def is_outdated(release: Release, policy: Policy) -> bool:
    """Return True if the classes of a release were made by another policy than the stored one."""
    try:
        new = Request.from_ledger(release.overrides).over(policy)
    except DbanonError:  # its options do not fit any more
        return True
    return release.policy.refreshed_as(new) != new


def slow_pools(policy: Policy, *, settings: Settings | None = None) -> Notice | None:
    """Return a warning if refreshes publish new persons of a table late or never.

    The size of a pool follows from the sensitive values of sampled rows. None if the role may not
    read them.
    """
    from dbanon.anonymization.pools import pool_size

    names = [rule.column for rule in policy.with_role(Role.SENSITIVE)]
    with (
        connect(settings or Settings.load()) as session,
        session.transaction(read_only=True, keep=False),
    ):
        info = catalog.describe(session, policy.table)
        is_readable = set(names) == catalog.readable_columns(session, info, names)
        if not names or not is_readable or identity.foreign_code(session, info):
            return None
        identity.admit(session, info)
        rows = catalog.count_rows(session, info)
        found = catalog.sampled_hashes(session, info, names, n_rows=rows, most=_SAMPLED)
        identity.require_admitted(session)
    columns = zip(names, zip(*found, strict=True), strict=True) if found else ()
    counts = {name: [*Counter(values).values()] for name, values in columns}
    size = pool_size(policy, counts, persons=rows)
    if not found or (size is not None and _POOLS * size <= rows):
        return None
    if size is None:
        message = "a refresh would publish no new persons: fewer sensitive values than l"
    else:
        message = (
            f"a refresh publishes new persons by pools of {size:,} ({size / rows:.0%} of rows)"
        )
    return Notice(Topic.SLOW_REFRESH, message)


def check_policy(
    policy: str | Path | Policy,
    *,
    strict: bool = False,
    warn: Callable[[PolicyWarning], None] | None = None,
    settings: Settings | None = None,
) -> Policy:
    """Check a policy like ``set_policy``, without storing it; raises the same errors."""
    given = _given(policy, None)
    with (
        connect(settings or Settings.load()) as session,
        session.transaction(read_only=True, keep=False),
    ):
        require_current(session)
        return _checked(session, given, given.table, strict=strict, warn=warn)[1]


def _given(policy: str | Path | Policy, name: str | None) -> Policy:
    from dbanon.anonymization.registry import parameters_of, require_installed

    given = loading.given(policy, name=name)
    require_installed(given)
    parameters_of(given)  # refuses those that it does not have
    return given


def _checked(
    session: Session,
    given: Policy,
    table: TableName,
    *,
    strict: bool,
    warn: Callable[[PolicyWarning], None] | None,
) -> tuple[TableInfo, Policy]:
    info, given, known = _fitted(session, given, table)
    found = []
    if strict or warn is not None:
        found = _warnings(session, given.completed(info), info, known=known)
    if strict:
        require_no_warnings(found)
    elif warn is not None:
        for warning in found:
            warn(warning)
    return info, given


def _fitted(
    session: Session, policy: Policy, table: TableName
) -> tuple[TableInfo, Policy, dict[str, Taxonomy]]:
    """Return a table, its fitting policy and taxonomies; raises PolicyError, TaxonomyError."""
    from dbanon.anonymization.encoding.bands import level_of

    info = catalog.describe(session, table)
    policy = loading.of_table(session, policy, info)
    known = store.newest_taxonomies(session, policy.taxonomies)
    info = policy.keyed(info)
    loading.require_valid(policy, info, known)
    for rule in policy.with_role(Role.QUASI):
        if rule.taxonomy is not None and rule.at_least is not None:
            level_of(known[rule.taxonomy], rule)
    return info, policy, known


def _warnings(
    session: Session, policy: Policy, info: TableInfo, *, known: Mapping[str, Taxonomy]
) -> list[PolicyWarning]:
    found = warnings_of_table(session, policy, info)
    if info.oid in session.admitted:
        _require_own_taxonomies(session, policy, info, known)
    identity.require_admitted(session)
    return found


def _require_own_taxonomies(
    session: Session, policy: Policy, info: TableInfo, known: Mapping[str, Taxonomy]
) -> None:
    """Raise PolicyError for a taxonomy without any of the sampled values of its column."""
    texts = {column.name for column in info.columns if column.kind is ColumnKind.CATEGORY}
    readable = catalog.readable_columns(session, info, texts)
    for rule in policy.columns:
        if rule.taxonomy is None or rule.on_new_value is not None or rule.column not in readable:
            continue
        values = catalog.distinct_values(session, info, rule.column, _MOST_VALUES)
        if values and {value.rstrip() for value in values}.isdisjoint(known[rule.taxonomy].labels):
            name = quote_identifier(rule.column)
            raise PolicyError(
                f"taxonomy {rule.taxonomy} has no value of column {name}: it seems to be that of"
                " another column",
                hint="dbanon taxonomy list; then name the taxonomy of this column",
            )


def _operation(table: str | TableName, policy: str, done: str) -> Operation:
    name = TableName.parse(table)
    what = "the policy" if policy == DEFAULT_NAME else f"the policy {policy}"
    show = command("dbanon policy show", name, options=policy_option(policy))
    return Operation(f"{what} of {name}", done, show)


def suggest_policy(table: str | TableName, *, settings: Settings | None = None) -> str:
    """Return a policy file to edit: a role for every column, with the reason as a comment."""
    return _drafted(inspect(table, settings=settings))


def policy_of_profile(found: Profile) -> Policy:
    """Return the suggested policy of a table whose columns were described by a sample."""
    return policies.parse(_drafted(found.inspection))


def _drafted(inspection: Inspection) -> str:
    suggested = [(column.suggestion, column.reason) for column in inspection.columns]
    return draft(
        inspection.info,
        suggested,
        inspection.persons,
        proposals={c.info.name: c.proposal for c in inspection.columns if c.proposal is not None},
        key=inspection.key,
        differing=inspection.differing,
        finding=inspection.finding,
    )


def load_policy(
    table: str | TableName, *, name: str = DEFAULT_NAME, settings: Settings | None = None
) -> Policy:
    """Return a stored policy of a table; raises PolicyError if there is none of that name."""
    with current_session(settings or Settings.load()) as session:
        return load(session, catalog.describe(session, TableName.parse(table)), name).written


def policy_with_approval(
    table: str | TableName, *, name: str = DEFAULT_NAME, settings: Settings | None = None
) -> tuple[Policy, Approval]:
    """Return a stored policy and the approval of the same version; raises as ``load_policy``."""
    with connect(settings or Settings.load()) as session:
        find = partial(find_published, session, TableName.parse(table))
        with looking(session, find) as (info,):
            return load(session, info, name).written, _stored_version(session, info.name, name)[1]


def export_policy(
    table: str | TableName, *, name: str = DEFAULT_NAME, settings: Settings | None = None
) -> str:
    """Return a stored policy of a table as TOML for ``set_policy``."""
    return policies.dump(load_policy(table, name=name, settings=settings))


def list_policies(
    *, settings: Settings | None = None, on_unreadable: Callable[[PolicyError], None] | None = None
) -> list[StoredPolicy]:
    """Return all stored policies with the relations that they serve, by table and name.

    ``on_unreadable`` gets the error of each unreadable one; by default the first is raised.
    """
    with current_session(settings or Settings.load()) as session:
        stored = store.list_policies(session, on_unreadable=on_unreadable or _raise)
        served = ledger.served_entries(session)
    return [
        StoredPolicy(
            policy,
            updated_at,
            tuple(
                entry.relation
                for entry in reversed(served)
                if (entry.table, entry.policy_name) == (policy.table, policy.name)
            ),
        )
        for policy, updated_at in stored
    ]


def _raise(error: PolicyError) -> None:
    raise error


def drop_policy(
    table: str | TableName, *, name: str = DEFAULT_NAME, settings: Settings | None = None
) -> None:
    """Delete a policy of a table; its releases stay. Raises PolicyError."""
    where, operation = TableName.parse(table), _operation(table, name, "dropped")
    with current_session(settings or Settings.load(), operation=operation) as session:
        schemas = session.search_path if where.schema is None else (where.schema,)
        for found in (TableName(schema, where.name) for schema in schemas):
            if store.drop_policy(session, found, name):
                store.note_dropped(session, found, name)
                return
        names = [n for s in schemas for n in store.policy_names(session, TableName(s, where.name))]
        raise no_policy(where, name, names=names)


def approve_policy(
    table: str | TableName,
    *,
    name: str = DEFAULT_NAME,
    digest: str | None = None,
    settings: Settings | None = None,
) -> Approval:
    """Approve the stored version of a policy, as a role that cannot act as its author.

    ``digest``: approve only the version with a digest that begins so, by 32 digits or more, as
    ``policy_approval`` has it. Raises PolicyError, and NotPermitted for the author and for a role
    without the right.
    """
    where, operation = TableName.parse(table), _operation(table, name, "approved")
    with current_session(settings or Settings.load(), operation=operation) as session:
        found, stored = _stored_version(session, where, name)
        if digest is not None and not (stored.digest or "").startswith(digest.lower() or "-"):
            raise PolicyError(
                f"version {stored.version} of the policy {name} of {found} has another digest",
                hint=command("dbanon policy show", found, options=policy_option(name)),
            )
        if digest is not None and len(digest) < DIGITS:
            raise PolicyError(
                f"{DIGITS} digits of the digest are needed: two policies can share fewer",
                hint=command("dbanon policy show", found, options=policy_option(name)),
            )
        store.approve(session, found, stored)
        return _stored_version(session, found, name)[1]


def policy_approval(
    table: str | TableName, *, name: str = DEFAULT_NAME, settings: Settings | None = None
) -> Approval:
    """Return the stored version of a policy with its digest, and who approved it first."""
    with current_session(settings or Settings.load()) as session:
        return _stored_version(session, TableName.parse(table), name)[1]


def _stored_version(session: Session, where: TableName, name: str) -> tuple[TableName, Approval]:
    """Return the full name of a table, and the stored version of a policy of it."""
    schemas = session.search_path if where.schema is None else (where.schema,)
    tables = [TableName(schema, where.name) for schema in schemas]
    for table in tables:
        found = store.load_approval(session, table, name)
        if found is not None:
            return table, found
    names = [known for table in tables for known in store.policy_names(session, table)]
    raise no_policy(where, name, names=names)


def diff_policies(
    table: str | TableName, before: Given | None, after: Given, *, settings: Settings | None = None
) -> tuple[Difference, ...]:
    """Return the differences of two policies of a table, by key.

    Each is the name of a stored one, or the path of a file; ``before`` is by default the stored
    policy with the name of ``after``. Raises PolicyError if there is no such policy, or the file is
    about another table, and ConfigError if a file cannot be read.
    """
    with current_session(settings or Settings.load()) as session:
        info = catalog.describe(session, TableName.parse(table))
        new = _policy(session, info, after)
        old = _policy(session, info, new.name if before is None else before)
    return differences(policies.to_document(old), policies.to_document(new))


def _policy(session: Session, info: TableInfo, given: Given) -> Policy:
    if isinstance(given, Path):
        return loading.of_table(session, loading.given(given), info)
    return load(session, info, given).written


def policy_history(
    table: str | TableName, *, name: str | None = None, settings: Settings | None = None
) -> list[Event]:
    """Return the events of a table's policies, or of one name, newest first.

    Each was stored, approved, dropped or used to publish, with the changes.
    """
    with current_session(settings or Settings.load()) as session:
        found = catalog.describe(session, TableName.parse(table)).name
        versions = store.policy_versions(session, found, name=name)
        approvals = store.policy_approvals(session, found, name=name)
        releases = ledger.releases(session, table=found)
    if name is not None:
        releases = [release for release in releases if release.policy_name == name]
    names = dict.fromkeys([*(v.name for v in versions), *(r.policy_name for r in releases)])
    events = [
        event
        for one in names
        for event in (
            *_stored([version for version in versions if version.name == one]),
            *_published([release for release in releases if release.policy_name == one]),
        )
    ]
    return sorted([*approvals, *events], key=lambda event: event.at, reverse=True)


def _stored(versions: Sequence[Version]) -> Iterator[Event]:
    for version, earlier in pairwise((*versions, None)):
        assert version is not None  # noqa: S101 - the last of all is never the first of two
        before = None if earlier is None else earlier.document
        known = version.document is not None and before is not None
        yield Event(
            at=version.stored_at,
            by=version.stored_by,
            policy=version.name,
            operation="dropped" if version.document is None else "stored",
            version=version.version,
            changes=differences(before or {}, version.document or {}) if known else (),
        )


def _published(releases: Sequence[Release]) -> Iterator[Event]:
    for release, earlier in pairwise((*releases, None)):
        assert release is not None  # noqa: S101 - the last of all is never the first of two
        assert release.created_at is not None  # noqa: S101 - the ledger has it
        before = None if earlier is None else to_document(earlier.policy)
        yield Event(
            at=release.created_at,
            by=release.created_by,
            policy=release.policy_name,
            operation="published",
            changes=() if before is None else differences(before, to_document(release.policy)),
            release=release.id,
            relation=release.relation,
        )
