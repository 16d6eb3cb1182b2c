"""``dbanon doctor``."""

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console


def doctor(
    *,
    schema: options.Schema = "anon",
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check versions, privileges and possible leaks.

    Changes nothing. Exit code 1 if a check fails, 4 if a table has drifted from its policy.
    """
    from dbanon.actions.doctor import Level
    from dbanon.actions.doctor import doctor as action

    findings = action(schema=schema, settings=options.settings(dsn, owner=owner))
    told = [f for f in findings if not quiet or f.level is not Level.OK]
    if json:
        console.document(findings)
    elif told:
        rows = [(f.level.value, f.subject, f.message.splitlines(), f.hint) for f in told]
        console.table(("", "subject", "finding", "try"), rows)
    worst = max((finding.exit_code for finding in findings), default=0)
    if worst:
        raise typer.Exit(worst)
