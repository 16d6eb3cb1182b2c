"""The commands for a published relation: check, describe, export, grant, revoke, count, attack."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.cli.terminal.console import interruptible
from dbanon.domain.release import ExportFormat
from dbanon.domain.report import SAMPLES, Attacker
from dbanon.domain.table import TableName, quote_identifier
from dbanon.domain.text import command
from dbanon.formats.finders import given
from dbanon.formats.support import Mode
from dbanon.pages import figures, files
from dbanon.request import LARGEST_COUNT, LARGEST_NUMBER

if TYPE_CHECKING:
    from dbanon.actions.releases.attack import Attempt
    from dbanon.actions.releases.check import Checked, Described
    from dbanon.actions.releases.grant import Access
    from dbanon.domain.release import NoisyCounts


Relation = Annotated[
    str | None,
    typer.Argument(
        metavar="[RELATION]", show_default=False, help="such as anon.patients; or --all"
    ),
]
Published = Annotated[
    str, typer.Argument(metavar="RELATION", help="a published one, such as anon.patients")
]
All = Annotated[bool, typer.Option("--all", help="all served releases, compared with the ledger")]
Quasi = Annotated[
    list[str] | None,
    typer.Option("--quasi", metavar="COLUMN", show_default=False, help="a quasi-identifier"),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", metavar="COLUMN", show_default=False, help="a sensitive column"),
]

History = Annotated[bool, typer.Option("--history", help="compare all releases of the table")]


def check(
    relation: Relation = None,
    *,
    all_: All = False,
    k: options.K = None,
    l: options.L = None,
    quasi: Quasi = None,
    sensitive: Sensitive = None,
    history: History = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Prove a published relation again, or all of them.

    The database counts; every reader of the relation can run this. Exit code 3 if a model fails, or
    if there is nothing to check. The result is recorded in the ledger if the role may write it.
    --history is for the role that publishes: exit code 3 also if all releases of the table together
    disclose more than each of them promises.

    \b
    dbanon check anon.patients
    dbanon check anon.patients --history
    dbanon check --all --quiet
    dbanon check some.table --quasi age --quasi sex --k 5 --sensitive disease --l 3
    """
    from dbanon.actions.releases.check import check_all, check_one

    settings = options.settings(dsn, owner=owner)
    if all_:
        asked = given(relation=relation, k=k, l=l, quasi=quasi, sensitive=sensitive)
        options.refuse(Mode.CHECK_ALL, asked, option="--all")
        _show_all(check_all(settings=settings), json=json, quiet=quiet)
    elif relation is None:
        raise typer.BadParameter("name a relation, or pass --all", param_hint="RELATION")
    else:
        columns = {"quasi": quasi or (), "sensitive": sensitive or ()}
        _show_checked(
            check_one(relation, k=k, l=l, **columns, settings=settings), json=json, quiet=quiet
        )
    if history:
        for one in dbanon.check_history(relation, settings=settings):
            console.warn_of(one.notices)


def _show_checked(found: Checked, *, json: bool, quiet: bool) -> None:
    if json:
        console.document(found)
    elif not quiet or found.error is not None:
        report.checks(found.report)
        _remark(found)
    if found.error is not None:
        raise found.error


def _show_all(found: list[Checked], *, json: bool, quiet: bool) -> None:
    if json:
        console.document(found)
    elif not quiet or any(one.error is not None for one in found):
        rows = [(one.relation, one.release, one.verdict.value, one.recorded) for one in found]
        console.table(("relation", "release", "verdict", "recorded"), rows)
        for one in found:
            _remark(one)
            if one.error is not None:
                console.problem(one.error)
    codes = [one.error.exit_code for one in found if one.error is not None]
    if codes:
        raise typer.Exit(max(codes))


def _remark(found: Checked) -> None:
    if found.remark is not None:
        console.say(found.remark)


def describe(relation: Published, *, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """Describe the columns and the proved models of a relation.

    For every reader of the relation; needs no other right.

    \b
    dbanon describe anon.patients
    """
    found = dbanon.describe(relation, settings=options.settings(dsn))
    if json:
        console.document(found)
    else:
        _show_described(found)


def _show_described(found: Described) -> None:
    proved = "" if found.proved_at is None else f", proved at {found.proved_at:%Y-%m-%d %H:%M %Z}"
    rows = [(column.name, column.type, column.words) for column in found.columns]
    title = f"{found.relation}, release {found.release}{proved}"
    console.table(("column", "type", "what it holds"), rows, title=title)
    console.say(f"every class meets {figures.models(found.models)}")
    for name, share in found.former.items():
        console.say(f"{quote_identifier(name)}: {share:.1%} of the rows show former values")
    console.say("a class is all rows that are alike in the quasi-identifiers")
    console.say(f"prove it again: {command('dbanon check', found.relation)}")


Format = Annotated[ExportFormat, typer.Option("--format", help="of the file", show_default=True)]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        show_default=False,
        help="a new file; by default RELATION.FORMAT",
    ),
]


def export(
    relation: Published,
    *,
    format: Format = ExportFormat.PARQUET,  # noqa: A002 - the name of the option
    output: Output = None,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Export a published relation as a file, with its proof in a JSON file next to it.

    Proves the models again, and reads the rows on the same snapshot. For every reader of the
    relation.

    \b
    dbanon export anon.patients
    dbanon export anon.patients --format csv --output patients-2026.csv
    """
    name = TableName.parse(relation).name
    path = output or Path(f"{name}.{format}")
    if output is None and path.name != str(path):
        raise typer.BadParameter(f"{name} is no name of a file", param_hint="--output")
    proof = path.with_name(f"{path.name}.json")
    for file in (path, proof):
        files.require_new(file, option="--output")
    found = dbanon.export(relation, format=format, settings=options.settings(dsn))
    files.write_new(found.content, path, option="--output")
    try:
        text = dumps(console.plain(found), indent=2, ensure_ascii=False)
        files.write_new(f"{text}\n".encode(), proof, option="--output")
    except BaseException:
        path.unlink()
        raise
    if json:
        console.document(found)
    else:
        console.say(f"{found.rows:,} rows of release {found.release} in {path}, proof in {proof}")


Granted = Annotated[
    str, typer.Argument(metavar="RELATION|TABLE", help="a published relation, or its source table")
]
Roles = Annotated[list[str], typer.Argument(metavar="ROLE...", help="roles, or public")]
VerifyOnly = Annotated[bool, typer.Option("--dry-run", help="run and verify all, then roll back")]
PrintGrants = Annotated[
    bool, typer.Option("--print-sql", help="like --dry-run, and print the statements")
]


def grant(
    relation: Granted,
    roles: Roles,
    *,
    dry_run: VerifyOnly = False,
    print_sql: PrintGrants = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Grant roles read access to a published relation.

    Fails and changes nothing if a reader of the relation could also read its hidden data.

    \b
    dbanon grant anon.patients analysts
    dbanon grant patients analysts 'Research Group' --dry-run
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found = dbanon.grant(relation, roles, dry_run=dry_run or print_sql, settings=settings)
    _show_access(found, "can read it", json=json, print_sql=print_sql, dry_run=dry_run)


def revoke(
    relation: Granted,
    roles: Roles,
    *,
    dry_run: VerifyOnly = False,
    print_sql: PrintGrants = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Revoke access to a published relation.

    \b
    dbanon revoke anon.patients analysts
    dbanon revoke patients public
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found = dbanon.revoke(relation, roles, dry_run=dry_run or print_sql, settings=settings)
    _show_access(found, "has no right on it", json=json, print_sql=print_sql, dry_run=dry_run)


def _show_access(
    found: list[Access], outcome: str, *, json: bool, print_sql: bool, dry_run: bool
) -> None:
    if json:
        console.document(found)
        return
    for one in found:
        if print_sql:
            for statement in one.statements:
                console.verbatim(f"{statement};\n")
        else:
            already = "" if one.changed else " (it was so already)"
            console.say(f"{one.relation}: {', '.join(one.roles)} {outcome}{already}")
    console.warn_of(remark for one in found for remark in one.remarks)
    if dry_run and not print_sql:
        console.say("dry run: all of it was verified, then rolled back")


By = Annotated[
    list[str], typer.Option("--by", metavar="COLUMN", help="a column to count by; once or more")
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon",
        help="amount to spend of the policy's budget, 0.001 to 10; more means less noise",
    ),
]
CostOnly = Annotated[bool, typer.Option("--dry-run", help="count nothing, and show the cost")]


def count(
    relation: Published,
    *,
    by: By,
    epsilon: Epsilon,
    dry_run: CostOnly = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Publish noisy counts of the source, within a privacy budget.

    The counts include rows that the release suppresses. Readers of the release can read them, in a
    relation with the suffix _counts. This does not make dbanon a product of differential privacy:
    the release itself has no noise.

    \b
    dbanon count anon.patients --by sex --by chapter --epsilon 0.1
    dbanon count anon.patients --by chapter --epsilon 0.5 --dry-run
    """
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found = dbanon.count(relation, by=by, epsilon=epsilon, dry_run=dry_run, settings=settings)
    if json:
        console.document(found)
    else:
        _show_counts(found, dry_run=dry_run)


def _show_counts(found: NoisyCounts, *, dry_run: bool) -> None:
    if dry_run:
        console.say("dry run: nothing was counted, and nothing is spent")
    else:
        console.say(f"{found.cells:,} counts of {found.table} are served as {found.relation}")
    console.say(f"  95 % of the counts are within {found.within:,} of the truth")
    spends = "would bring" if dry_run else "brings"
    console.say(
        f"  epsilon {found.epsilon:g} {spends} what is spent to {found.spent:g} of {found.budget:g}"
    )
    console.warn_of(found.notes)


As = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="|".join(Attacker),
        show_default=False,
        help="attacker: seeks a known person (default), any person, or as many as possible",
    ),
]
Other = Annotated[
    str | None,
    typer.Option(
        "--with",
        metavar="OTHER",
        show_default=False,
        help="second relation of the same table that the attacker has",
    ),
]
Samples = Annotated[
    int, typer.Option("--samples", min=1, max=LARGEST_COUNT, help="number of persons to attack")
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=LARGEST_NUMBER, help="seed for drawing persons")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        parser=options.duration,
        show_default=False,
        help="start no further attack after this time: 30s, 2m",
    ),
]


def attack(
    relation: Published,
    *,
    attacker: As = None,
    other: Other = None,
    samples: Samples = SAMPLES,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    timings: options.Timings = False,
    quiet: options.NoProgress = False,
) -> None:
    """Simulate attacks on a published relation.

    For the role that publishes: reads the present table, and writes nothing. The success rates are
    exact figures of the source, and confidential.

    \b
    dbanon attack anon.patients
    dbanon attack anon.patients --as journalist
    dbanon attack anon.patients --with anon.patients_research
    """
    if other is not None:
        options.refuse(Mode.ATTACK_BOTH, given(attacker=attacker), option="--with")
    settings = options.settings(dsn, owner=owner)
    with console.watched(steps=4, timings=timings, quiet=quiet) as stages, interruptible(stages):
        shared: dict[str, Any] = {"settings": settings, "stages": stages, "time_limit": time_limit}
        if other is None:
            by = attacker or Attacker.PROSECUTOR
            found = dbanon.attack(relation, attacker=by, samples=samples, seed=seed, **shared)
        else:
            found = dbanon.attack_both(relation, other, samples=samples, seed=seed, **shared)
    if json:
        console.document(found)
    else:
        _show_attempt(found)


def _show_attempt(found: Attempt) -> None:
    console.say(found.confidential)
    title = f"{found.relation} (release {found.release}), attacked by a {found.attacker}"
    if found.attacker is None:
        title = (
            f"{found.relation} (release {found.release}) and {found.other} (release"
            f" {found.other_release}), attacked by somebody who has both"
        )
    report.attacks(found.attacks, title=title)
    if not found.attacks:
        console.say(title)
    for name, reason in found.not_tried.items():
        console.say(f"not tried: {name}, as {reason}")
