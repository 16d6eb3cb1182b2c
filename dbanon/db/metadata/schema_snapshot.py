"""What a table looks like now, to hold against what it looked like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db.metadata import store
from dbanon.db.queries import query
from dbanon.domain.drift import Baseline

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableInfo


def baseline(session: Session, info: TableInfo, policy: Policy) -> Baseline:
    """Return the table as it is now, with the newest versions of the policy's taxonomies."""
    row = session.pg.execute(query("catalog/table_shape"), {"relation": info.oid}).fetchone()
    assert row is not None  # noqa: S101 - the relation was just described
    names = {rule.taxonomy for rule in policy.columns if rule.taxonomy is not None}
    versions = {name: t.version for name, t in store.load_taxonomies(session, names).items()}
    return Baseline.from_document({"shape": row[0], "taxonomies": versions})
