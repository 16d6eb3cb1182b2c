"""``dbanon policy``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console, report
from dbanon.domain.text import command

if TYPE_CHECKING:
    from dbanon.domain.policy import ModelSpec

app = typer.Typer(help="Say what to publish of a table.", no_args_is_help=True)


@app.command("set")
def set_(
    table: options.Table,
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="policy in TOML")],
    strict: options.Strict = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Check a policy file against its table and store it.

    \b
    dbanon policy suggest patients > patients.toml
    $EDITOR patients.toml
    dbanon policy set patients --file patients.toml
    """
    from dbanon.actions import policy

    stored = policy.set_policy(
        table,
        file,
        strict=strict,
        warn=lambda caution: console.caution([caution]),
        settings=options.settings(dsn, owner=owner, superuser=allow_superuser),
    )
    console.say(f"policy of {stored.table} stored")
    k = "" if stored.model("k-anonymity") else "--k 5"
    console.say("next: " + command("dbanon plan", stored.table, options=k))


@app.command()
def suggest(
    table: options.Table,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", show_default=False, help="write it here")
    ] = None,
    dsn: options.Dsn = None,
) -> None:
    """Write a policy file to edit: a role for every column, each with its reason."""
    from dbanon.actions import policy
    from dbanon.domain.errors import ConfigError

    text = policy.suggest_policy(table, settings=options.settings(dsn))
    if output is None:
        console.verbatim(text)
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        hint = "name another file, or leave -o out to have it printed"
        raise ConfigError(f"cannot write {output}: {error.strerror}", hint=hint) from None
    then = command("dbanon policy set", table, options=command("--file", output))
    console.say(f"{output} written; edit it, then: {then}")


@app.command()
def show(table: options.Table, *, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """Show the stored policy of a table."""
    from dbanon.actions import policy

    found = policy.load_policy(table, settings=options.settings(dsn))
    if json:
        console.document(found)
        return
    console.table(
        ("column", "role", "recoding", "taxonomy", "snap", "weight"),
        [
            (r.column, r.role.value, r.recoding, r.taxonomy, _number(r.snap), _number(r.weight))
            for r in found.columns
        ],
        title=str(found.table),
    )
    models = ", ".join(_spell(model) for model in found.models) or "none"
    console.say(f"models: {models}; algorithm: {report.search(found)}")


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _spell(model: "ModelSpec") -> str:
    parameters = ", ".join(f"{name} = {value}" for name, value in model.params.items())
    return f"{model.name} ({parameters})"


@app.command()
def export(table: options.Table, *, dsn: options.Dsn = None) -> None:
    """Print the stored policy as TOML that set reads back."""
    from dbanon.actions import policy

    console.verbatim(policy.export_policy(table, settings=options.settings(dsn)))


@app.command("list")
def list_(*, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """List the tables that have a policy."""
    from dbanon.actions import policy

    found = policy.list_policies(
        settings=options.settings(dsn), on_unreadable=lambda error: console.warn(str(error))
    )
    if json:
        console.document(found)
        return
    rows = [(p.table, p.k, report.diversity(p), p.algorithm, len(p.columns)) for p in found]
    console.table(("table", "k", "l", "algorithm", "columns"), rows)


@app.command()
def drop(
    table: options.Table,
    *,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Delete the policy of a table; what is published stays."""
    from dbanon.actions import policy

    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    policy.drop_policy(table, settings=settings)
    console.say(f"policy of {table} dropped")
