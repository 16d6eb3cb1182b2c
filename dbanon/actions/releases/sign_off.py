"""Sum up a release on one page for the person who answers for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.actions.jobs.schedules import list_schedules
from dbanon.actions.releases.report import report
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import current_session
from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.domain.messages import remaining_risks
from dbanon.domain.report import SignOff
from dbanon.formats import policies
from dbanon.request import Request
from dbanon.settings import Settings

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.release import Release
    from dbanon.domain.table import TableName


def sign_off(
    relation: str | TableName, *, settings: Settings | None = None, stages: Stages | None = None
) -> SignOff:
    """Return what a person signs for a release: contents, approval, proof, readers, what remains.

    Proves the models again and reads no source row, so that it can be shared like a public report,
    whose errors it raises.
    """
    settings = settings or Settings.load()
    found = report(relation, public=True, settings=settings, stages=stages)
    with current_session(settings) as session:
        release = ledger.release_by_id(session, found.release or 0)
        if release is None:
            raise ConfigError(
                f"{found.relation} was withdrawn meanwhile", hint="dbanon release list"
            )
        approval = store.approval_of(session, release)
        changed = approval is not None and _is_changed(session, release)
    schedules = list_schedules(settings=settings)
    due = next((one.next_due for one in schedules if one.table == release.table), None)
    return SignOff(
        relation=found.relation,
        table=found.table,
        release=release.id,
        published_at=release.created_at,
        published_by=release.created_by,
        policy=found.policy,
        kind=release.kind,
        columns=found.columns,
        approval=approval,
        has_options=changed,
        checks=found.checks,
        proofs=found.proofs,
        statements=found.statements,
        readers=found.readers,
        refreshed_at=due,
        risks=remaining_risks(found, earlier=release.earlier),
    )


def _is_changed(session: Session, release: Release) -> bool:
    """Return True if options changed the stored policy of a release."""
    versions = store.policy_versions(session, release.table, name=release.policy_name)
    stored = next((v.document for v in versions if v.version == release.policy_version), None)
    if stored is None:
        return True
    try:
        policy = policies.from_document({**stored, "name": release.policy_name})
        return Request.from_ledger(release.overrides).over(policy) != Request().over(policy)
    except DbanonError:  # its options do not fit any more
        return True
