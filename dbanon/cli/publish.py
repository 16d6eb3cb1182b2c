"""``dbanon publish``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli import options
from dbanon.cli.options import publication
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.interrupts import OnInterrupt, interruptible

if TYPE_CHECKING:
    from dbanon.domain.release import Release


@publication.asking()
def publish(
    table: options.Table,
    *,
    asked: publication.Asked,
    on_interrupt: options.Interrupt = OnInterrupt.DISCARD,
    dry_run: options.DryRun = False,
    strict: options.Strict = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
    timings: options.Timings = False,
    progress: options.Progress = False,
) -> None:
    """Publish an anonymized relation, proved by the database.

    \b
    dbanon publish patients --k 5 --l 3
    dbanon publish patients --k 5 --l 3 --grant analysts
    dbanon publish patients --k 5 --l 3 --l-kind entropy --t 0.2
    dbanon publish patients --k 5 --algorithm auto --time-limit 2m --on-interrupt publish
    dbanon publish patients --k 10 --as view --name patients_live
    """
    from dbanon.actions.publish import publish as action

    with (
        console.watched(timings=timings, steps=9, progress=progress) as stages,
        interruptible(stages, on_interrupt),
    ):
        release = action(
            table,
            dry_run=dry_run,
            strict=strict,
            settings=options.settings(dsn, owner=owner, superuser=allow_superuser),
            stages=stages,
            **asked,
        )
    _show(release, dry_run=dry_run, json=json)


def _show(release: Release, *, dry_run: bool, json: bool) -> None:
    if json:
        console.document(release)
    else:
        report.checks(release.checks)
        report.loss(release.loss)
        if dry_run:
            console.say("dry run: all of it was proved, then rolled back")
        else:
            console.say(f"release {release.id} of {release.table} is served as {release.relation}")
    console.caution(release.warnings)
    report.composition(release.composition)
