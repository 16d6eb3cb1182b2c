"""``dbanon server``."""

from typing import Annotated

import typer

import dbanon
from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.settings import Settings

app = typer.Typer(help="Manage the embedded server, and compile in advance.", no_args_is_help=True)


@app.command()
def status(*, json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Show the state and the location of the embedded server."""
    found = dbanon.server_status(Settings.load())
    if json:
        console.document(found)
        return
    for name, value in console.plain(found).items():
        console.say(f"{name}: {value}")


@app.command()
def stop() -> None:
    """Stop the embedded server; the next command that needs it starts it again."""
    dbanon.server_stop(Settings.load())
    console.say("the embedded server is stopped")


@app.command()
def url() -> None:
    """Print the embedded server's URI, for psql, pgAdmin or pandas."""
    typer.echo(dbanon.server_url(Settings.load()))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(context: typer.Context) -> None:
    """Open psql on the embedded server; further arguments go to psql.

    \b
    dbanon server psql
    dbanon server psql -- -c 'SELECT * FROM anon.patients LIMIT 5'
    """
    raise typer.Exit(dbanon.server_psql(Settings.load(), context.args))


@app.command()
def warm(*, json: options.Json = False) -> None:
    """Compile the search of the algorithm auto in advance.

    The first publish, plan or refresh on a machine compiles it to machine code, which is stored in
    the user's cache folder, or in the one that NUMBA_CACHE_DIR names. This command does so
    beforehand, for example when an image is built. It compiles only what is missing, and connects
    to no database.

    \b
    dbanon server warm
    NUMBA_CACHE_DIR=/var/cache/dbanon dbanon server warm --json
    """
    from dbanon.actions import server

    done = server.warm(on_step=lambda title: console.err().print(f"trying {title}"))
    if json:
        console.document(done)
    elif done.seconds:
        console.say(f"compiled in {done.seconds:.0f} s, and kept in {done.cache}")
    else:
        console.say(f"nothing to compile: all is in {done.cache}")
