"""The command line: parse, call one action, render."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dbanon.cli.terminal import console
from dbanon.cli.terminal.console import document, visible
from dbanon.domain.deeds import followed
from dbanon.domain.errors import DbanonError
from dbanon.request import Panel

if TYPE_CHECKING:
    from dbanon.domain.deeds import Deeds

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


_BOUNDS = re.compile(r"; [^];]*<=x[^];]*(?=\])|  \[[^];]*<=x[^];]*\]")
"""The range of a number in a help, which an error names as well."""


class Command(TyperCommand):
    """A command with its options listed under headings in its help."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer's own Click
        """Write arguments, the command's own options, then those of each panel; help at the end."""
        rows: dict[str, list[tuple[str, str]]] = {
            name: [] for name in ("Arguments", "Options", *Panel)
        }
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            panel = getattr(parameter, "rich_help_panel", None)
            if panel is None and parameter.name == "help" and rows[Panel.DISPLAY]:
                panel = Panel.DISPLAY
            record = parameter.get_help_record(ctx)
            if record:
                name, text = record
                record = name, _BOUNDS.sub("", text)
                rows[panel or ("Arguments" if is_argument else "Options")].append(record)
        for panel, records in rows.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dbanon {version('dbanon')}")
        raise typer.Exit


# Typer's exit code at Ctrl-C.
INTERRUPTED = 130
# The exit code of a shell for SIGPIPE.
BROKEN_PIPE = 141


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
        init,
        inspect,
        jobs,
        plan,
        policy,
        publish,
        refresh,
        server,
        taxonomy,
    )
    from dbanon.cli.releases import attack, check, count, grant, ledger, report

    app.command("demo")(init.demo)
    app.command("init")(init.init)
    app.command("inspect")(inspect.inspect)
    app.add_typer(taxonomy.app, name="taxonomy")
    app.add_typer(policy.app, name="policy")
    app.command("plan")(plan.plan)
    app.command("publish")(publish.publish)
    app.command("grant")(grant.grant)
    app.command("revoke")(grant.revoke)
    app.command("check")(check.check)
    app.command("describe")(check.describe)
    app.command("report")(report.report)
    app.command("attack")(attack.attack)
    app.command("count")(count.count)
    app.command("refresh")(refresh.refresh)
    app.add_typer(jobs.app, name="schedule")
    app.command("worker")(jobs.worker)
    app.command("history")(ledger.history)
    app.add_typer(ledger.app, name="release")
    app.command("doctor")(init.doctor)
    app.add_typer(server.app, name="server")


def _list_by_panel() -> None:
    groups = (group.typer_instance for group in app.registered_groups)
    for one in (app, *filter(None, groups)):
        for command in one.registered_commands:
            command.cls = Command


_register()
_list_by_panel()


def main() -> None:
    """Run the command line; the only place that turns errors into messages and exit codes."""
    with console.lasting() as out, followed() as deeds:
        code = _run(deeds)
        out.flush()
        if out.lost is not None:
            code = _lost(out.lost, deeds, code)
    sys.exit(code)


def _run(deeds: Deeds) -> int | str | None:
    if any("\ud800" <= character <= "\udfff" for word in sys.argv for character in word):
        _complain("error: an argument holds bytes that are not text in this locale")
        return 2
    try:
        app()
    except DbanonError as error:
        return _failed(error, deeds)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _complain(f"interrupted; {deeds}")
        return ended.code
    except Exception as error:
        if os.environ.get("DBANON_DEBUG"):
            raise
        return _unforeseen(error, deeds)
    return 0


def _failed(error: DbanonError, deeds: Deeds) -> int:
    """Print an error with its place and the next command; return the exit code."""
    _complain(f"error: {error}")
    if deeds.partly_done:
        _complain(f"  {deeds}")
    if error.hint:
        _complain(f"  try: {error.hint}")
    done = str(deeds) if deeds.partly_done else None
    _document(type(error).__name__, str(error), code=error.exit_code, hint=error.hint, done=done)
    return error.exit_code


def _document(
    kind: str, message: str, *, code: int, hint: str | None = None, done: str | None = None
) -> None:
    """Print an error as JSON for --json, unless a document was printed already."""
    if "--json" in sys.argv and isinstance(sys.stdout, console.Stream) and sys.stdout.is_unused:
        found = {"kind": kind, "message": message, "hint": hint, "done": done, "exit_code": code}
        document({"error": found})


def _lost(reason: OSError, deeds: Deeds, code: int | str | None) -> int | str | None:
    """Report completed work whose output was lost: a caller may otherwise publish again."""
    if code or deeds.any_done:
        _complain(f"warning: the output could not be written ({reason.strerror}); {deeds}")
        return code
    if isinstance(reason, BrokenPipeError):
        return BROKEN_PIPE
    _complain(f"error: the output could not be written ({reason.strerror}); {deeds}")
    return 1


def _unforeseen(error: Exception, deeds: Deeds) -> int:
    """Report an unexpected error by its type, and return the exit code."""
    if _was_interrupted(error):
        _complain(f"interrupted; {deeds}")
        return INTERRUPTED
    if isinstance(error, MemoryError):
        message, hint = "this machine is out of memory", "--block 10000"
    else:  # The text of an unexpected error may quote a row, so only its type is printed.
        message = f"unforeseen {type(error).__name__}"
        hint = "the same command with DBANON_DEBUG=1, which may print values"
    _complain(f"error: {message}; {deeds}")
    _complain(f"  try: {hint}")
    _document(type(error).__name__, message, code=1, hint=hint, done=str(deeds))
    return 1


def _was_interrupted(error: BaseException) -> bool:
    """Return True if Ctrl-C caused an error: an interrupted import raises its own."""
    below = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt) or (below is not None and _was_interrupted(below))


def _complain(text: str) -> None:
    print(visible(text), file=sys.stderr)  # noqa: T201 - errors need no console
