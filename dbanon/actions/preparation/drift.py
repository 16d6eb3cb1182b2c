"""What changed about a published table that its policy does not say: then nothing is published."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbanon.domain.drift import Change, compare
from dbanon.domain.errors import AccessDrift, DriftError, PolicyError, TableNotFound, TaxonomyError
from dbanon.domain.policy import Role
from dbanon.domain.table import TableName
from dbanon.domain.text import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbanon.db.session import Session
    from dbanon.domain.policy import ColumnRule, Policy
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo


def find_source(session: Session, where: TableName) -> TableInfo:
    """Describe a table; raises TableNotFound, or DriftError when it is gone and still served."""
    from dbanon.db import catalog
    from dbanon.db.metadata import store

    try:
        return catalog.describe(session, where)
    except TableNotFound as error:
        schemas = session.search_path if where.schema is None else (where.schema,)
        for schema in schemas:
            for release in store.releases(
                session, table=TableName(schema, where.name), served=True
            ):
                raise gone(release) from None
        raise error from None


def gone(release: Release) -> DriftError:
    """Return the error that the source of a served release is gone."""
    return DriftError(
        f"{release.table} is gone; {release.relation} is served on (release {release.id})",
        hint=f"dbanon release drop {release.id}",
    )


def require_unchanged(session: Session, info: TableInfo, relation: TableName) -> None:
    """Raise DriftError with everything that changed, if a release of the table is served.

    relation: what is about to be published; the readers of what it serves now must have gained
    no right on the source.
    """
    from dbanon.db.metadata import store

    served = store.releases(session, table=info.name, served=True)
    if not served:
        return
    replaced = next((release for release in served if release.relation == relation), None)
    found = [*changes(session, info), *(gained_rights(session, info, replaced) if replaced else ())]
    if found:
        kind = AccessDrift if any(change.of_rights for change in found) else DriftError
        release = replaced or served[0]
        lines = [f"{info.name} changed; release {release.id} is served on", *map(str, found)]
        raise kind("\n  ".join(lines), hint=found[0].hint)


def changes(session: Session, info: TableInfo) -> list[Change]:
    """Return what is no longer as when the policy was last set or published by; reads no row."""
    from dbanon.db.metadata import store
    from dbanon.db.metadata.schema_snapshot import baseline

    policy = store.load_policy(session, info.name)
    before = store.load_baseline(session, info.name)
    if policy is None or before is None:
        return []
    return compare(before, baseline(session, info, policy), table=info.name)


def gained_rights(session: Session, info: TableInfo, release: Release) -> Iterator[Change]:
    """Yield who can read a release and, by now, gets at what it hides."""
    from dbanon.db import reach
    from dbanon.db.releases import views

    published = views.oid_of(session, release.relation)
    if published is None:
        return
    for found in reach.private_reach(session, published=published, source=info.oid):
        revoke = command("dbanon revoke", release.relation, options="ROLE")
        hint = f"{found.remedy}, or {revoke}"
        yield Change(None, f"{found}, and may read {release.relation}", hint, of_rights=True)


def misfits(session: Session, info: TableInfo, policy: Policy) -> Iterator[Change]:
    """Yield why the policy does not fit the table as the catalog describes it; reads no row."""
    from dbanon.actions.preparation.policies import validate_policy

    try:
        validate_policy(session, policy, info)
    except PolicyError as error:
        yield Change(None, str(error), error.hint or command("dbanon policy suggest", info.name))


def strays(session: Session, info: TableInfo, policy: Policy) -> Iterator[Change]:
    """Yield the columns with values that their taxonomies or orders lack; reads these columns."""
    from dbanon.anonymization.encoding.encode import encode
    from dbanon.db import transfer
    from dbanon.db.metadata import store

    read = {Role.QUASI, Role.SENSITIVE}
    rules = [
        rule
        for rule in policy.columns
        if (rule.taxonomy is not None or rule.order is not None) and rule.role in read
    ]
    if not rules:
        return
    kinds = {column.name: column.kind for column in info.columns}
    named = {rule.taxonomy for rule in rules if rule.taxonomy is not None}
    taxonomies = store.load_taxonomies(session, named)
    source = transfer.read(session, info, _only(policy, rules))
    for rule in rules:
        try:
            encode(source.columns, _only(policy, [rule]), kinds=kinds, taxonomies=taxonomies)
        except (TaxonomyError, PolicyError) as error:
            hint = error.hint or command("dbanon policy export", info.name)
            yield Change(None, str(error), hint)


def _only(policy: Policy, rules: Sequence[ColumnRule]) -> Policy:
    return replace(policy, columns=tuple(rules), models=(), class_label=None)
