"""``dbanon policy``."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.domain.messages import approval_in_words, settings_in_words
from dbanon.domain.policy import (
    DEFAULT_NAME,
    ColumnRule,
    Event,
    ModelSpec,
    Policy,
    StoredPolicy,
    keys_of,
    policy_option,
)
from dbanon.domain.text import command
from dbanon.pages import figures

if TYPE_CHECKING:
    from dbanon.domain.policy_warning import PolicyWarning

app = typer.Typer(help="Manage publication policies.", no_args_is_help=True)

OwnName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        show_default=False,
        help="name of the policy; by default that in the file, or default",
    ),
]


@app.command("set")
def set_(
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", show_default=False, help="by default the one in the file"),
    ] = None,
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="policy in TOML; - is stdin")],
    policy: OwnName = None,
    strict: options.Strict = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Check a policy file against its table and store it.

    \b
    dbanon policy suggest patients > patients.toml
    $EDITOR patients.toml
    dbanon policy set --file patients.toml
    dbanon policy set patients --file coarse.toml --policy research
    """
    from dbanon.actions.policy import served_otherwise, set_policy, slow_pools

    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found: list[PolicyWarning] = []
    stored = set_policy(
        table, file, name=policy, strict=strict, warn=found.append, settings=settings
    )
    slow = slow_pools(stored, settings=settings)
    console.warn_of([*found, *filter(None, [slow])])
    console.say(f"{_called(stored.name)} of {stored.table} stored")
    if old := served_otherwise(stored, settings=settings):
        served = ", ".join(str(release.relation) for release in old)
        console.say(f"still served with classes of an older policy: {served}")
    k = "" if stored.model("k-anonymity") else "--k 5"
    chosen = " ".join(filter(None, [policy_option(stored.name), k]))
    console.say("next: " + command("dbanon plan", stored.table, options=chosen))


def _called(name: str) -> str:
    return "policy" if name == DEFAULT_NAME else f"policy {name}"


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="policy in TOML; - is stdin")],
    *,
    strict: options.Strict = False,
    dsn: options.Dsn = None,
) -> None:
    """Check a policy file against its table without storing it.

    Exit code 1 if `set` would refuse it; with --strict also if `set` would warn.
    """
    found: list[PolicyWarning] = []
    fitting = dbanon.check_policy(
        file, strict=strict, warn=found.append, settings=options.settings(dsn)
    )
    console.warn_of(found)
    console.say(f"{_called(fitting.name)} of {fitting.table} fits; nothing was stored")


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
    from dbanon.domain.errors import ConfigError

    text = dbanon.suggest_policy(table, settings=options.settings(dsn))
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
def show(
    table: options.Table,
    *,
    policy: options.PolicyName = DEFAULT_NAME,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Show a stored policy of a table."""
    from dbanon.actions.policy import policy_with_approval

    found, approval = policy_with_approval(table, name=policy, settings=options.settings(dsn))
    if json:
        console.document(found)
        return
    console.table(
        ("column", "role", "recoding", "taxonomy", "finest", "weight"),
        [
            (r.column, r.role.value, r.recoding, r.taxonomy, _finest(r), _number(r.weight))
            for r in found.columns
        ],
        title=f"{found.table}, policy {found.name}",
    )
    models = ", ".join(_spell(model) for model in found.models) or "none"
    console.say(f"models: {models}; algorithm: {figures.search(found)}")
    for title, text in settings_in_words(found, where=_conditions(found)):
        console.say(f"{title}: {text}")
    console.say(approval_in_words(approval))


@app.command()
def approve(
    table: options.Table,
    *,
    policy: options.PolicyName = DEFAULT_NAME,
    digest: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", show_default=False, help="only the version of this digest, as in show"
        ),
    ] = None,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Approve the stored version of a policy, as another role than its author.

    \b
    dbanon policy show patients
    dbanon policy approve patients --digest 3f0a91c2b7de04d18e6c5ab92f7713c0
    """
    settings = options.settings(dsn)
    found = dbanon.approve_policy(table, name=policy, digest=digest, settings=settings)
    if json:
        console.document(found)
    else:
        console.say(f"{_called(policy)} of {table}: {approval_in_words(found)}")


def _number(value: float) -> str:
    return f"{value:g}"


def _finest(rule: "ColumnRule") -> str | None:
    said = []
    for name, key in keys_of(type(rule)).items():
        value = getattr(rule, name)
        if key.shown is None or value is None or value is False:
            continue
        if isinstance(value, tuple):
            said.append(f"{len(value)} {name}")
        elif value is True:
            said.append(name)
        else:
            said.append(f"{name} = {_number(value) if isinstance(value, float) else value}")
    return ", ".join(said) or None


def _spell(model: "ModelSpec") -> str:
    parameters = ", ".join(f"{name} = {value}" for name, value in model.params.items())
    return f"{model.name} ({parameters})"


def _conditions(found: "Policy") -> str:
    held = (
        (condition.column, condition.comparison.value, ", ".join(map(_value, condition.values)))
        for condition in found.where
    )
    return " and ".join(" ".join(filter(None, parts)) for parts in held)


@app.command()
def export(
    table: options.Table, *, policy: options.PolicyName = DEFAULT_NAME, dsn: options.Dsn = None
) -> None:
    """Print a stored policy as TOML that set reads back."""
    console.verbatim(dbanon.export_policy(table, name=policy, settings=options.settings(dsn)))


@app.command("list")
def list_(*, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """List the stored policies, with their served relations."""
    found = dbanon.list_policies(settings=options.settings(dsn), on_unreadable=console.problem)
    if json:
        console.document(found)
        return
    headers = ("table", "policy", "k", "l", "algorithm", "columns", "updated", "served as")
    console.table(headers, map(_listed, found))


def _listed(stored: "StoredPolicy") -> tuple[object, ...]:
    policy, served = stored.policy, ", ".join(map(str, stored.served_by))
    what = (policy.k, figures.diversity(policy), policy.algorithm, len(policy.columns))
    return (policy.table, policy.name, *what, stored.updated_at, served or None)


@app.command()
def diff(
    table: options.Table,
    before: Annotated[
        str | None, typer.Argument(metavar="[A]", show_default=False, help="a stored policy")
    ] = None,
    after: Annotated[
        str | None, typer.Argument(metavar="[B]", show_default=False, help="another one")
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", show_default=False, help="in place of B; - is stdin"),
    ] = None,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Show the differences of two policies of a table: A and B, or the stored one and a file.

    \b
    dbanon policy diff patients default research
    dbanon policy diff patients --file patients.toml
    """
    if file is not None and after is not None:
        raise typer.BadParameter("takes the place of B", param_hint="--file")
    new = after if file is None else file
    if new is None:
        raise typer.BadParameter("name two policies, or pass --file", param_hint="A B")
    found = dbanon.diff_policies(table, before, new, settings=options.settings(dsn))
    if json:
        console.document(found)
    elif not found:
        console.say("no difference")
    else:
        rows = [(one.key, _side(one.before), _side(one.after)) for one in found]
        console.table(("key", before or "stored", after or "file"), rows)


def _value(value: object) -> str:
    return dumps(value, ensure_ascii=False)


def _side(value: object) -> str | None:
    return None if value is None else _value(value)


@app.command()
def history(
    table: options.Table,
    *,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="NAME", show_default=False, help="only this policy"),
    ] = None,
    dsn: options.Dsn = None,
    json: options.Json = False,
) -> None:
    """Show who stored, approved and published the policies of a table, when, with changes."""
    found = dbanon.policy_history(table, name=policy, settings=options.settings(dsn))
    if json:
        console.document(found)
        return
    rows = [
        (
            event.at,
            event.by,
            event.policy,
            _operation(event),
            "; ".join(
                f"{one.key}: {_side(one.before) or '-'} to {_side(one.after) or '-'}"
                for one in event.changes
            ),
        )
        for event in found
    ]
    console.table(("when", "by", "policy", "what", "changes"), rows)


def _operation(event: "Event") -> str:
    if event.release is not None:
        return f"published as {event.relation}, release {event.release}"
    return f"{event.operation}, version {event.version}"


@app.command()
def drop(
    table: options.Table,
    *,
    policy: options.PolicyName = DEFAULT_NAME,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Delete a policy of a table; its releases stay."""
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    dbanon.drop_policy(table, name=policy, settings=settings)
    console.say(f"{_called(policy)} of {table} dropped")
