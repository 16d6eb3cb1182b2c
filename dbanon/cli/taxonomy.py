"""``dbanon taxonomy``."""

from pathlib import Path
from typing import Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console

app = typer.Typer(help="Manage taxonomies (generalization hierarchies).", no_args_is_help=True)
builtin = typer.Typer(help="Use taxonomies that come with dbanon.", no_args_is_help=True)
app.add_typer(builtin, name="builtin")

Name = Annotated[str, typer.Argument(metavar="NAME", help="name of the taxonomy")]


@app.command("import")
def import_(
    name: Name,
    file: Annotated[Path, typer.Argument(help="CSV: leaf;level 1;...;* or parent,child rows")],
    *,
    form: Annotated[str, typer.Option("--form", help="auto, levels or edges")] = "auto",
    inner_values: Annotated[
        bool, typer.Option("--inner-values", help="inner nodes are values, too")
    ] = False,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Read a taxonomy from a CSV file; importing again adds a version.

    \b
    dbanon taxonomy import disease chapter.csv
    """
    if form not in {"auto", "levels", "edges"}:
        raise typer.BadParameter("auto, levels or edges", param_hint="--form")
    stored = dbanon.import_taxonomy(
        name,
        file,
        inner_values=inner_values,
        form=form,  # type: ignore[arg-type]
        settings=options.settings(dsn, owner=owner, superuser=allow_superuser),
    )
    _report(stored.name, stored.version, stored.n_leaves, json=json)


@app.command()
def derive(
    name: Name,
    table: options.Table,
    column: Annotated[str, typer.Argument(help="column with the values for the leaves")],
    *,
    kind: Annotated[str, typer.Option("--kind", help="flat, intervals, dates or prefix")] = "flat",
    width: Annotated[
        list[float] | None,
        typer.Option("--width", show_default=False, help="of intervals, finest first"),
    ] = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Derive a taxonomy from the values of a column.

    \b
    dbanon taxonomy derive sex patients sex
    dbanon taxonomy derive age patients age --kind intervals --width 5 --width 10 --width 20
    dbanon taxonomy derive zip patients zip --kind prefix
    """
    from dbanon.actions import taxonomy

    if kind not in taxonomy.DERIVATIONS:
        raise typer.BadParameter(", ".join(taxonomy.DERIVATIONS), param_hint="--kind")
    stored = taxonomy.derive_taxonomy(
        name,
        column,
        table=table,
        kind=kind,
        widths=width or (),
        settings=options.settings(dsn, owner=owner, superuser=allow_superuser),
    )
    _report(stored.name, stored.version, stored.n_leaves, json=json)


def _report(name: str, version: int, leaves: int, *, json: bool) -> None:
    if json:
        console.document({"name": name, "version": version, "n_leaves": leaves})
    else:
        console.say(f"taxonomy {name}, version {version}: {leaves:,} leaves")


@builtin.command("list")
def list_builtin(*, json: options.Json = False) -> None:
    """List the taxonomies that come with dbanon."""
    from dbanon.actions import taxonomy

    if json:
        console.document(taxonomy.BUILT_IN)
    else:
        console.table(("name", "what it holds"), [*taxonomy.BUILT_IN.items()])


@builtin.command("add")
def add_builtin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="one of `builtin list`")],
    *,
    stored: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", show_default=False, help="store it under this name"),
    ] = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
    json: options.Json = False,
) -> None:
    """Store a taxonomy that comes with dbanon; adding it again adds a version.

    \b
    dbanon taxonomy builtin add country
    dbanon taxonomy builtin add us-state --as state
    """
    from dbanon.actions import taxonomy

    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    found = taxonomy.add_built_in(name, stored=stored, settings=settings)
    _report(found.name, found.version, found.n_leaves, json=json)


@app.command("list")
def list_(*, dsn: options.Dsn = None, json: options.Json = False) -> None:
    """List every version of every taxonomy; the newest is in force."""
    found = dbanon.list_taxonomies(settings=options.settings(dsn))
    if json:
        console.document(found)
        return
    headers = ("name", "version", "n_leaves", "height", "created_at")
    console.table(headers, [[row[header] for header in headers] for row in found])


@app.command()
def show(
    name: Name,
    *,
    max_leaves: Annotated[int, typer.Option("--max-leaves", min=1, help="leaves to draw")] = 60,
    dsn: options.Dsn = None,
) -> None:
    """Draw a taxonomy as a tree."""
    from dbanon.formats.taxonomies import render_tree

    found = dbanon.load_taxonomy(name, settings=options.settings(dsn))
    for line in render_tree(found, max_leaves=max_leaves):
        console.verbatim(f"{line}\n")


@app.command()
def missing(
    name: Name,
    table: options.Table,
    column: Annotated[str, typer.Argument(help="column that uses the taxonomy")],
) -> None:
    """Print a query for column values that a taxonomy lacks.

    Prints no values: run the query in psql, as a role that may read the column.

    \b
    dbanon taxonomy missing zip patients zip | psql clinic
    """
    from dbanon.actions import taxonomy

    console.verbatim(taxonomy.missing_values_sql(name, column, table=table))


@app.command()
def export(name: Name, *, dsn: options.Dsn = None) -> None:
    """Print a taxonomy as CSV that import reads back."""
    console.verbatim(dbanon.export_taxonomy(name, settings=options.settings(dsn)))


@app.command()
def drop(
    name: Name,
    *,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Delete all versions of a taxonomy that no policy names."""
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    versions = dbanon.drop_taxonomy(name, settings=settings)
    console.say(f"taxonomy {name} dropped, versions: {versions}")
