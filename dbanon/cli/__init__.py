"""The command line: parse, call one action, render."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from dbanon.cli.terminal import console
from dbanon.cli.terminal.console import document, visible
from dbanon.domain.errors import DbanonError
from dbanon.domain.outcomes import followed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbanon.domain.outcomes import Operations

COMMANDS = {
    "demo": ("system:demo", "Publish real patients on an embedded PostgreSQL."),
    "init": ("system:init", "Install or upgrade the metadata schema."),
    "inspect": ("inspect:inspect", "Show columns, types, counts, suggested roles and recodings."),
    "taxonomy": ("taxonomy:app", "Manage taxonomies (generalization hierarchies)."),
    "policy": ("policy:app", "Manage publication policies."),
    "studio": ("studio:studio", "Decide, publish and read reports in a browser."),
    "plan": ("plan:plan", "Predict the cost of a publication or refresh; store nothing."),
    "publish": ("publish:publish", "Publish an anonymized relation, proved by the database."),
    "grant": ("releases.relations:grant", "Grant roles read access to a published relation."),
    "revoke": ("releases.relations:revoke", "Revoke access to a published relation."),
    "check": ("releases.relations:check", "Prove a published relation again, or all of them."),
    "describe": (
        "releases.relations:describe",
        "Describe the columns and the proved models of a relation.",
    ),
    "export": (
        "releases.relations:export",
        "Export a published relation as a file, with its proof in a JSON file next to it.",
    ),
    "report": (
        "releases.report:report",
        "Report the risk and the utility of a published relation.",
    ),
    "attack": ("releases.relations:attack", "Simulate attacks on a published relation."),
    "count": (
        "releases.relations:count",
        "Publish noisy counts of the source, within a privacy budget.",
    ),
    "refresh": ("refresh:refresh", "Refresh served releases: keep classes, add new persons."),
    "schedule": ("refresh:app", "Manage refresh schedules; `dbanon worker` runs them."),
    "worker": ("refresh:worker", "Run scheduled refreshes until stopped."),
    "history": (
        "releases.ledger:history",
        "Show all releases of a table, and their combined disclosure.",
    ),
    "release": ("releases.ledger:app", "Read the ledger of releases."),
    "doctor": ("system:doctor", "Check versions, privileges and possible leaks."),
    "server": ("system:app", "Manage the embedded server, and compile in advance."),
    "help": ("system:explain", "Explain a command, or a warning by its code."),
}
"""Place of each command or group below this package, and the first line of its help."""


class Commands(Mapping[str, Any]):
    """The commands by name; one is imported when it is looked up."""

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(COMMANDS)

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(COMMANDS)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - Typer's own Click
        """Import a command; raises KeyError."""
        module, _, function = COMMANDS[name][0].partition(":")
        found = getattr(import_module(f"{__name__}.{module}"), function)
        if not isinstance(found, typer.Typer):
            info = CommandInfo(name, cls=Command, callback=found)
            return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)
        for command in found.registered_commands:
            command.cls = Command
        group = TyperInfo(found, name=name)
        return get_group_from_info(
            group, pretty_exceptions_short=False, suggest_commands=True, rich_markup_mode=None
        )


class _Conversion:
    """Converts the value of a parameter by Typer's rules, which load pydantic, if it needs to."""

    @staticmethod
    def coerce(value: object, *, param: Any, ctx: Any) -> object:  # noqa: ANN401 - Typer's own
        """Return the value in the type of the parameter."""
        kind = param.type_descriptor
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if isinstance(value, str) and kind.annotation is str and not kind.parameter_info.parser:
            return value
        param._runtime_param = None  # noqa: SLF001 - Typer makes it from the type
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _convert_if_given(command: Any, ctx: Any) -> None:  # noqa: ANN401 - Typer's own
    """Let a command convert only values that are given and are no texts, which most are."""
    for parameter in command.get_params(ctx):
        if vars(parameter).get("_runtime_param", command) is None:  # of later versions of Typer
            vars(parameter)["_runtime_param"] = _Conversion


class Program(TyperGroup):
    """The program, whose help imports no command."""

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - whatever Typer gives
        """Take the arguments of Typer."""
        super().__init__(**arguments)
        self.commands = cast("Any", Commands())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own
        """Parse arguments without loading pydantic."""
        _convert_if_given(self, ctx)
        return super().parse_args(ctx, args)

    def list_commands(self, _ctx: Any) -> list[str]:  # noqa: ANN401 - Typer's own Click
        """Return the names in the order of use."""
        return list(COMMANDS)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = typer.Typer(
    name="dbanon",
    cls=Program,
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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own
        """Parse arguments without loading pydantic."""
        _convert_if_given(self, ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer's own Click
        """Write arguments, the command's own options, then those of each panel; help at the end."""
        from dbanon.request import Panel

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
        from importlib.metadata import version

        from dbanon.resources import commit

        found = commit()
        typer.echo(f"dbanon {version('dbanon')}{f' (commit {found[:12]})' if found else ''}")
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


def main() -> None:
    """Run the command line; the only place that turns errors into messages and exit codes."""
    with console.lasting() as out, followed() as operations:
        code = _run(operations)
        out.flush()
        if out.lost is not None:
            code = _lost(out.lost, operations, code)
    sys.exit(code)


def _run(operations: Operations) -> int | str | None:
    if any("\ud800" <= character <= "\udfff" for word in sys.argv for character in word):
        _complain("error: an argument holds bytes that are not text in this locale")
        return 2
    try:
        app()
    except DbanonError as error:
        return _failed(error, operations)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _complain(f"interrupted; {operations}")
        return ended.code
    except Exception as error:
        if os.environ.get("DBANON_DEBUG"):
            raise
        return _unforeseen(error, operations)
    return 0


def _failed(error: DbanonError, operations: Operations) -> int:
    """Print an error with its place and the next command; return the exit code."""
    _complain(f"error: {error}")
    if operations.partly_done:
        _complain(f"  {operations}")
    if error.hint:
        _complain(f"  try: {error.hint}")
    done = str(operations) if operations.partly_done else None
    _document(type(error).__name__, str(error), code=error.exit_code, hint=error.hint, done=done)
    return error.exit_code


def _document(
    kind: str, message: str, *, code: int, hint: str | None = None, done: str | None = None
) -> None:
    """Print an error as JSON for --json, unless a document was printed already."""
    if "--json" in sys.argv and isinstance(sys.stdout, console.Stream) and sys.stdout.is_unused:
        found = {"kind": kind, "message": message, "hint": hint, "done": done, "exit_code": code}
        document({"error": found})


def _lost(reason: OSError, operations: Operations, code: int | str | None) -> int | str | None:
    """Report completed work whose output was lost: a caller may otherwise publish again."""
    if code or operations.any_done:
        _complain(f"warning: the output could not be written ({reason.strerror}); {operations}")
        return code
    if isinstance(reason, BrokenPipeError):
        return BROKEN_PIPE
    _complain(f"error: the output could not be written ({reason.strerror}); {operations}")
    return 1


def _unforeseen(error: Exception, operations: Operations) -> int:
    """Report an unexpected error by its type, and return the exit code."""
    if _was_interrupted(error):
        _complain(f"interrupted; {operations}")
        return INTERRUPTED
    if isinstance(error, MemoryError):
        message, hint = "this machine is out of memory", "--block 10000"
    else:  # The text of an unexpected error may quote a row, so only its type is printed.
        message = f"unforeseen {type(error).__name__}"
        hint = "the same command with DBANON_DEBUG=1, which may print values"
    _complain(f"error: {message}; {operations}")
    _complain(f"  try: {hint}")
    _document(type(error).__name__, message, code=1, hint=hint, done=str(operations))
    return 1


def _was_interrupted(error: BaseException) -> bool:
    """Return True if Ctrl-C caused an error: an interrupted import raises its own."""
    below = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt) or (below is not None and _was_interrupted(below))


def _complain(text: str) -> None:
    print(visible(text), file=sys.stderr)  # noqa: T201 - errors need no console
