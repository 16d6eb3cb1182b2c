"""``dbanon publish``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbanon.cli import options
from dbanon.cli.options import publication
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.interrupts import OnInterrupt, interruptible
from dbanon.domain.errors import ConfigError

if TYPE_CHECKING:
    from dbanon.domain.release import Release


@publication.asking()
def publish(
    table: options.OneTable = None,
    *,
    asked: publication.Asked,
    dataset: options.DatasetFile = None,
    on_interrupt: options.Interrupt = OnInterrupt.DISCARD,
    dry_run: options.DryRun = False,
    strict: options.Strict = False,
    new_series: options.NewSeries = False,
    recipients_changed: options.RecipientsChanged = False,
    series: options.Series = None,
    executor: options.Executor = "threads",
    rows_per_block: options.RowsPerBlock = None,
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
    dbanon publish --dataset clinic.toml --k 5 --l 3
    dbanon publish patients --k 5 --executor processes --rows-per-block 250000
    """
    what = options.one_of(table, dataset)
    with (
        console.watched(timings=timings, steps=9, progress=progress) as stages,
        interruptible(stages, on_interrupt),
    ):
        releases = _published(
            what,
            dry_run=dry_run,
            strict=strict,
            new_series=new_series,
            recipients_changed=recipients_changed,
            series=series,
            executor=executor,
            rows_per_block=rows_per_block,
            settings=options.settings(dsn, owner=owner, superuser=allow_superuser),
            stages=stages,
            **asked,
        )
    _show_all(releases, dry_run=dry_run, json=json, alone=dataset is None)


def _published(
    what: str | Path,
    *,
    series: str | None,
    executor: str,
    rows_per_block: int | None,
    **asked: Any,  # noqa: ANN401 - whatever the options ask for
) -> list[Release]:
    from dbanon.actions.publish import publish as of_table
    from dbanon.actions.publish import publish_dataset

    if not isinstance(what, Path):
        return [
            of_table(what, series=series, executor=executor, rows_per_block=rows_per_block, **asked)
        ]
    if executor != "threads" or rows_per_block is not None:
        raise ConfigError(
            "the tables of a dataset are grouped together, and not in blocks",
            hint="leave out --executor and --rows-per-block",
        )
    if series is not None:
        raise ConfigError(
            "--series is about one table, and a dataset has several",
            hint="leave it out, or for other readers: --new-series --recipients-changed",
        )
    return publish_dataset(what, **asked)


def _show_all(releases: list[Release], *, dry_run: bool, json: bool, alone: bool) -> None:
    if json:
        console.document(releases[0] if alone else releases)
    for release in releases:
        _show(release, dry_run=dry_run, silent=json)


def _show(release: Release, *, dry_run: bool, silent: bool) -> None:
    if not silent:
        report.checks(release.checks)
        report.loss(release.loss, release.policy)
        if dry_run:
            console.say("dry run: all of it was proved, then rolled back")
        else:
            console.say(f"release {release.id} of {release.table} is served as {release.relation}")
        if release.sharing is not None:
            console.say(f"  {release.sharing}")
    console.caution(release.warnings)
    report.composition(release.composition)
