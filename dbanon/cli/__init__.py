"""The command line: parse, call one action, render."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from dbanon.cli.console import visible
from dbanon.cli.interrupts import Interrupted
from dbanon.domain.errors import DbanonError

app = typer.Typer(
    name="dbanon",
    help="Publish a k-anonymous, l-diverse relation of a live PostgreSQL table,"
    " proved by the database itself.",
    epilog="Start with: dbanon demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dbanon {version('dbanon')}")
        raise typer.Exit


# What Typer exits with at Ctrl-C.
INTERRUPTED = 130


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def _register() -> None:
    from dbanon.cli import (
        check,
        demo,
        doctor,
        grant,
        init,
        inspect,
        plan,
        policy,
        publish,
        refresh,
        release,
        server,
        taxonomy,
    )

    app.command("demo")(demo.demo)
    app.command("init")(init.init)
    app.command("inspect")(inspect.inspect)
    app.add_typer(taxonomy.app, name="taxonomy")
    app.add_typer(policy.app, name="policy")
    app.command("plan")(plan.plan)
    app.command("publish")(publish.publish)
    app.command("grant")(grant.grant)
    app.command("revoke")(grant.revoke)
    app.command("check")(check.check)
    app.command("refresh")(refresh.refresh)
    app.add_typer(release.app, name="release")
    app.command("doctor")(doctor.doctor)
    app.add_typer(server.app, name="server")


_register()


def main() -> None:
    """Run the command line; the one place where errors become messages and exit codes."""
    if any("\ud800" <= character <= "\udfff" for word in sys.argv for character in word):
        _complain("error: an argument holds bytes that are not text in this locale")
        sys.exit(2)
    try:
        app()
    except Interrupted as ended:
        _complain(str(ended))
        sys.exit(INTERRUPTED)
    except DbanonError as error:
        _complain(f"error: {error}")
        if error.hint:
            _complain(f"  try: {error.hint}")
        sys.exit(error.exit_code)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _complain("interrupted; nothing was published")
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        if os.environ.get("DBANON_DEBUG"):
            raise
        sys.exit(_unforeseen(error))


def _unforeseen(error: Exception) -> int:
    """Say what is known of an error that nobody expected, and return the exit code."""
    if _was_interrupted(error):
        _complain("interrupted; nothing was published")
        return INTERRUPTED
    if isinstance(error, MemoryError):
        _complain("error: this machine is out of memory")
        _complain("  try: --block 10000; dbanon release list shows what is served")
        return 1
    # What an unforeseen error says may quote a row, so only its kind is told.
    _complain(f"error: unforeseen {type(error).__name__}; nothing was published")
    _complain("  try: the same command with DBANON_DEBUG=1, which may print values")
    return 1


def _was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: a library that it stops on import raises its own."""
    below = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt) or (below is not None and _was_interrupted(below))


def _complain(text: str) -> None:
    print(visible(text), file=sys.stderr)  # noqa: T201 - errors need no console
