"""``dbanon doctor``."""

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console


def doctor(
    *, dsn: options.Dsn = None, owner: options.Owner = None, json: options.Json = False
) -> None:
    """Look at version, privileges and leaks.

    What an auditor would look at; nothing is changed. Exit code 1 when something fails, 4 when
    a table has drifted from its policy.
    """
    from dbanon.actions.doctor import doctor as action

    findings = action(settings=options.settings(dsn, owner=owner))
    if json:
        console.document(findings)
    else:
        rows = [(f.level.value, f.subject, f.message.splitlines(), f.hint) for f in findings]
        console.table(("", "subject", "finding", "try"), rows)
    worst = max((finding.exit_code for finding in findings), default=0)
    if worst:
        raise typer.Exit(worst)
