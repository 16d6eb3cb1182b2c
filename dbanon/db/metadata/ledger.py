"""Enter later checks of releases into the ledger, where the role may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.db.metadata import store
from dbanon.db.queries import query
from dbanon.domain.deeds import Deed

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.checks import CheckReport


def record(
    session: Session, report: CheckReport, *, release: int, reason: str | None
) -> str | None:
    """Enter a check of a release; return why not when it could not be, None when it was.

    Nothing that an auditor lacks is needed: a check counts with or without its entry.
    """
    deed = Deed(f"the check of {report.relation}", "recorded", f"dbanon release show {release}")
    with session.transaction(deed=deed):
        row = session.pg.execute(query("rights/can_record")).fetchone()
        if row is None or not row[0]:
            return "not recorded: this role cannot write the ledger"
        served = store.served_release(session, report.relation)
        if served is None or served.id != release:
            return f"not recorded: in the ledger, {report.relation} does not serve {release}"
        store.add_verification(session, release, report, reason=reason)
    return None
