"""``dbanon publish``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.console import OnInterrupt, interruptible
from dbanon.domain.text import command
from dbanon.request import Request  # noqa: TC001 - Typer reads annotations

if TYPE_CHECKING:
    from dbanon.domain.release import Release


@options.asking("publish")
def publish(
    table: options.OneTable = None,
    *,
    request: Request,
    dataset: options.DatasetFile = None,
    on_interrupt: options.Interrupt = OnInterrupt.DISCARD,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
    verbose: options.Verbose = False,
    timings: options.Timings = False,
    quiet: options.Quiet = False,
) -> None:
    """Publish an anonymized relation, proved by the database.

    \b
    dbanon publish patients --k 5 --l 3
    dbanon publish patients --k 5 --l 3 --grant analysts
    dbanon publish patients --k 5 --model entropy-l-diversity:l=3
    dbanon publish patients --k 10 --as view --name patients_live
    dbanon publish --dataset clinic.toml --k 5 --l 3
    """
    what = options.one_of(table, dataset)
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    with (
        console.watched(timings=timings, steps=9, quiet=quiet) as stages,
        interruptible(stages, on_interrupt),
    ):
        releases = _published(what, replace(request, settings=settings, stages=stages))
    if json:
        console.document(releases[0] if dataset is None else releases)
    for release in releases:
        if not (json or quiet):
            _show(release, dry_run=request.dry_run, verbose=verbose)
    console.warn_of(one for release in releases for one in release.notices)


def _published(what: str | Path, request: Request) -> list[Release]:
    from dbanon.actions.publish import publish_dataset_request, publish_request

    if isinstance(what, Path):
        return publish_dataset_request(what, request)
    return [publish_request(what, request)]


def _show(release: Release, *, dry_run: bool, verbose: bool) -> None:
    report.checks(release.checks, short=not verbose)
    report.loss(release.loss, release.policy, verbose=verbose, advice=release.advice)
    if dry_run:
        console.say("dry run: all of it was proved, then rolled back")
    else:
        console.say(f"release {release.id} of {release.table} is served as {release.relation}")
    report.independence(release.policy)
    if release.sharing is not None:
        console.say(f"  {release.sharing}")
    if not dry_run:
        console.say(f"next: {command('dbanon report', release.relation)}")
