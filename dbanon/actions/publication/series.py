"""What a release adds to what all releases of its series reveal, and whether it may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.domain.checks import CheckFailed, CheckReport
from dbanon.domain.composition import require_safe
from dbanon.domain.release import ReleaseKind
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.db.releases.publication import Publication
    from dbanon.db.session import Session
    from dbanon.domain.composition import Composition, Gate
    from dbanon.domain.release import Entry


def compare(
    session: Session, publication: Publication, gate: Gate, *, previous: Entry | None
) -> Composition:
    """Remember whom a copy shows, and say what all releases of its series together reveal.

    Nobody can remember whom a live view shows: that changes by itself. Raises CheckFailed when the
    release makes it worse and starts no series of its own.
    """
    from dbanon.db.histories import overlay

    table = publication.info.name
    if publication.kind is ReleaseKind.VIEW:
        live = {publication.id: publication.policy}
        found = overlay.recall(session, table, relation=publication.view, live=live)
    else:
        starts = _starts(session, publication, gate)
        found = overlay.remember(session, publication, starts_series=starts)
        if found.failed and not starts:
            _require_no_worse(session, publication, found, previous)
    require_safe([found] if gate.strict else [])
    return found


def _starts(session: Session, publication: Publication, gate: Gate) -> bool:
    """Whether a copy is compared with nothing from now on."""
    from dbanon.db.metadata import ledger

    if gate.new_series and not gate.recipients_changed:
        return not ledger.served_entries(session, table=publication.info.name)
    return gate.new_series


def _require_no_worse(
    session: Session, publication: Publication, found: Composition, previous: Entry | None
) -> None:
    """Raise CheckFailed when more cells fail than did before; what was revealed stays revealed."""
    from dbanon.db.histories import overlay

    table, view = publication.info.name, publication.view
    before = overlay.recall(session, table, relation=view, until=publication.id)
    if not found.is_worse_than(before, than=0 if previous is None else previous.id):
        return
    served = "nothing was published"
    if previous is not None and previous.served:
        served = f"release {previous.id} is served on"
    raise CheckFailed(
        "\n  ".join([*found.warnings, served]),
        CheckReport(view, tuple(one.result for one in found.failed)),
        hint=command("dbanon history", table)
        + "; for readers who never had one of these: --new-series --recipients-changed",
    )
