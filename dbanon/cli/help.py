"""``dbanon help``: explain a command or a warning."""

from __future__ import annotations

from textwrap import wrap
from typing import Annotated

import typer

from dbanon.cli.terminal import console
from dbanon.domain.errors import ConfigError
from dbanon.domain.policy_warning import EXPLANATIONS, Code


def _topics() -> list[str]:
    from dbanon.cli import COMMANDS

    return [*COMMANDS, *Code]


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(
            help="a command, or the code of a warning",
            show_default=False,
            autocompletion=_topics,
        ),
    ] = None,
) -> None:
    """Explain a command, or a warning by its code.

    \b
    dbanon help publish
    dbanon help near-unique
    dbanon help             # the codes of all warnings
    """
    from dbanon.cli import COMMANDS, app

    if topic is None:
        console.table(("code", "finding"), [(code, EXPLANATIONS[code].finding) for code in Code])
    elif topic in {*Code}:
        _explain(Code(topic))
    elif topic in COMMANDS:
        app([topic, "--help"])
    else:
        hint = "dbanon help, for the codes of warnings; dbanon --help, for the commands"
        raise ConfigError(f"{topic!r} is no command and no code of a warning", hint=hint)


def _explain(code: Code) -> None:
    found = EXPLANATIONS[code]
    for title, text in ((code, found.finding), ("risk", found.risk), ("remedy", found.remedy)):
        for line in wrap(f"{title}: {text}", 100, subsequent_indent="  "):
            console.say(line)
    console.say("acknowledge it in the policy, with a reason:")
    if code.of_column:
        console.say("  [columns.NAME]")
    console.say(f'  allow = ["{code}: REASON"]')
