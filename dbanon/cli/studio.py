"""``dbanon studio``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.domain import errors
from dbanon.domain.errors import ConfigError

if TYPE_CHECKING:
    from dbanon.settings import Settings
    from dbanon.studio.gate import Access

_LOCAL = "127.0.0.1"
_ANY = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - they are refused
_REMOTE = "--allow-remote --host NAME --tls-cert FILE --tls-key FILE"


Demo = Annotated[
    bool, typer.Option("--demo", help="with the patients of the demo on the embedded server")
]
Port = Annotated[
    int, typer.Option(metavar="PORT", min=0, max=65535, help="port; 0 takes a free one")
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="print the address; open no browser")]
ShowSource = Annotated[bool, typer.Option("--show-source", help="also show rows of the source")]
Host = Annotated[
    str, typer.Option(metavar="NAME", help="address to listen on, with --allow-remote")
]
AllowRemote = Annotated[bool, typer.Option("--allow-remote", help="allow another --host, with TLS")]
TlsCert = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="FILE", show_default=False, help="certificate in PEM"),
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-key", metavar="FILE", show_default=False, help="its key in PEM"),
]


def studio(
    *,
    demo: Demo = False,
    port: Port = 0,
    no_browser: NoBrowser = False,
    show_source: ShowSource = False,
    host: Host = _LOCAL,
    allow_remote: AllowRemote = False,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    dsn: options.Dsn = None,
    owner: options.Owner = None,
    allow_superuser: options.AllowSuperuser = False,
) -> None:
    """Decide, publish and read reports in a browser.

    Serves pages on this machine until Ctrl-C. The printed address admits one browser, once.
    Nothing is stored before you save or publish.

    \b
    dbanon studio --demo
    dbanon studio
    dbanon studio --no-browser --port 8765
    """
    errors.require_library("starlette", what="the studio")
    errors.require_library("uvicorn", what="the studio")
    errors.require_library("jinja2", what="the studio", extra="studio")
    tls = _tls(host, allow_remote=allow_remote, cert=tls_cert, key=tls_key)
    settings = options.settings(dsn, owner=owner, superuser=allow_superuser)
    from dbanon.studio import serving
    from dbanon.studio.workspace import Workspace

    if demo:
        if dsn is not None:
            raise typer.BadParameter("--demo uses the embedded server, and --dsn names another")
        settings = _of_demo(settings)

    def opened(access: Access) -> None:
        console.verbatim(f"{access.address}\n")
        console.note("the address admits one browser, once; Ctrl-C ends the studio")
        if not no_browser:
            serving.show(access)

    workspace = Workspace(settings, show_source=show_source)
    serving.serve(workspace, address=host, port=port, tls=tls, opened=opened)
    console.note("the studio has ended; drafts that were not saved are gone")


def _of_demo(settings: Settings) -> Settings:
    """Load the demo's table into the embedded server, whatever the environment names."""
    from dbanon.actions.demo import load

    settings = replace(settings, dsn=None)
    load("patients", settings=settings)
    return settings


def _tls(
    host: str, *, allow_remote: bool, cert: Path | None, key: Path | None
) -> tuple[Path, Path] | None:
    """Return the files of TLS, None on this machine; raises ConfigError if they are missing."""
    if host in _ANY:
        raise ConfigError("the studio listens on one address", hint=_REMOTE)
    if (cert is None) != (key is None):
        raise ConfigError("TLS needs a certificate and its key", hint=_REMOTE)
    for file in filter(None, (cert, key)):
        if not file.is_file():
            raise ConfigError(f"there is no file {file}", hint=_REMOTE)
    if host != _LOCAL and (not allow_remote or cert is None):
        message = f"the studio listens on {_LOCAL} alone, unless you allow more and give it TLS"
        raise ConfigError(message, hint=_REMOTE)
    return None if cert is None or key is None else (cert, key)
