"""Digests by which it is known that nothing changed that a release depends on."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from dbanon.domain.policy import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbanon.actions.preparation.loading import Loaded
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableInfo
    from dbanon.request import Request

_SECRETLY = "dealt by the secret key: "  # the mark of releases by anatomy


def digest_of_rows(session: Session, info: TableInfo, policy: Policy) -> str:
    """Return a digest of all rows of a table, of the columns that a policy is about."""
    from dbanon.db import catalog

    columns = [
        rule.column
        for rule in policy.columns
        if rule.role.is_published or rule.column == policy.subject
    ]
    columns += [condition.column for condition in policy.where]
    return catalog.content_digest(session, info, sorted({*columns, *info.primary_key}))


def fingerprint(
    session: Session, loaded: Sequence[Loaded], request: Request, *, of_rows: str | None = None
) -> str:
    """Return a digest of all that releases depend on; equal means nothing changed.

    of_rows: what ``digest_of_rows`` returned of a single table on this snapshot, if it was asked
    already.
    """
    parts = [_of_table(session, one, request, of_rows=of_rows) for one in loaded]
    return parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()


def _of_table(session: Session, loaded: Loaded, request: Request, *, of_rows: str | None) -> str:
    from dbanon.db import catalog
    from dbanon.db.proofs import population
    from dbanon.formats import policies

    info, policy = loaded.info, request.over(loaded.policy)
    content = of_rows or digest_of_rows(session, info, policy)
    ordered = policies.to_document(policy.without_rest().with_orders(info))
    parts = [content, ordered, {**loaded.versions}, request.to_ledger()]
    if policy.population is not None:
        everybody = population.admitted(session, policy.population)
        quasi = sorted(rule.column for rule in policy.with_role(Role.QUASI))
        parts.append(catalog.content_digest(session, everybody, quasi))
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"{_SECRETLY}{digest}" if policy.anatomy else digest


def is_dealt_by_seed(release: Release) -> bool:
    """Whether the buckets of a release were dealt by what anybody can repeat, as once they were."""
    return release.policy.anatomy and _SECRETLY not in release.fingerprint
