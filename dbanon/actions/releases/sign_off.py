"""Sum up a release on one page for the person who answers for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.actions.jobs.schedules import list_schedules
from dbanon.actions.releases.report import report
from dbanon.db.metadata import ledger, store
from dbanon.db.metadata.migrate import current_session
from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.domain.messages import alike_in_words
from dbanon.domain.policy import Role
from dbanon.domain.report import SignOff
from dbanon.domain.table import quote_identifier
from dbanon.domain.text import listed
from dbanon.formats import policies
from dbanon.request import Request
from dbanon.settings import Settings

if TYPE_CHECKING:
    from dbanon.db.session import Session
    from dbanon.domain.outcomes import Stages
    from dbanon.domain.release import Release
    from dbanon.domain.report import Report
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
        risks=_remaining_risks(found, earlier=release.earlier),
    )


def _is_changed(session: Session, release: Release) -> bool:
    """Return True if a release is not by its stored policy alone, also by a forged entry."""
    versions = store.policy_versions(session, release.table, name=release.policy_name)
    stored = next((v.document for v in versions if v.version == release.policy_version), None)
    if stored is None:
        return True
    try:
        policy = policies.from_document({**stored, "name": release.policy_name})
        if Request.from_ledger(release.overrides).changes(policy):
            return True
        return Request().over(policy).without_rest() != release.policy.without_rest()
    except DbanonError:  # its options do not fit any more
        return True


def _remaining_risks(found: Report, *, earlier: int) -> tuple[str, ...]:
    """Return what remains as risk of a release, in five sentences, from its public report."""
    policy, records = found.policy, found.risk.reidentification
    group = alike_in_words(policy)[0]
    worst = max((one.highest for one in records), default=1.0)
    mean = max((one.average for one in records), default=1.0)
    surest = max(found.risk.disclosures, key=lambda one: one.highest, default=None)
    quasi, others = (
        [quote_identifier(one.column) for role in roles for one in policy.with_role(role)]
        for roles in ([Role.QUASI], [Role.SENSITIVE, Role.INSENSITIVE])
    )
    if policy.anatomy:
        first = (
            "Whoever knows the quasi-identifiers of a person finds the row, by design of anatomy."
        )
    else:
        first = (
            f"Whoever knows {listed(quasi)} of a published person finds the row with a probability"
            f" of {worst:.1%} at most, and {mean:.1%} on average."
        )
    if surest is None:
        second = f"No column is declared sensitive: a {group} may share any other value."
    else:
        second = (
            f"In one {group}, a value of {quote_identifier(surest.column)} can be believed with"
            f" {surest.highest:.1%}; the most frequent value of a {group} is right for"
            f" {surest.guessed:.1%} of the rows, {surest.baseline:.1%} without the release."
        )
    third = (
        f"Whoever knows {listed(others or ['other published values'])} of a person may find the row"
        " by them: the models assume that nobody does."
    )
    fourth = (
        f"Earlier releases of the table: {earlier:,}; with several, or with other data about"
        " the same persons, a reader may learn more than from this one."
    )
    fifth = "Readers can copy the relation, and withdrawing it does not bring copies back."
    return first, second, third, fourth, fifth
