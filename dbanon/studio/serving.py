"""Serve the studio on one address until it is stopped."""

from __future__ import annotations

import asyncio
import html
import json
import socket
import tempfile
import webbrowser
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from shutil import rmtree
from threading import Timer
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route

from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.studio.gate import UNKNOWN, Access, Gate
from dbanon.studio.pages import FILES, form_of
from dbanon.studio.releases import ReleasePages
from dbanon.studio.searches import SearchPages
from dbanon.studio.tables import TablePages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from dbanon.studio.workspace import Workspace

LOCAL = "127.0.0.1"
_BETWEEN = 0.25  # seconds between two looks at a job
_CONNECTIONS = 64
_OPENED = 30.0  # seconds after which the file that opens the browser is deleted


class Studio(TablePages, SearchPages, ReleasePages):
    """All pages, and the files and events that they use."""

    async def enter(self, request: Request) -> Response:
        """Admit the browser that has the address, which it then leaves: it works once."""
        cookie = self.access.admit(request.query_params.get("token", ""))
        if cookie is None:
            return self.refused(UNKNOWN)
        # A page and no redirect: a cookie of a request from elsewhere would not be sent again.
        return self.render("enter.html", headers={"Set-Cookie": cookie})

    def file(self, request: Request) -> Response:
        """Return a style sheet or the script."""
        name = request.path_params["name"]
        if name not in FILES:
            return Response(status_code=404)
        path, kind = FILES[name]
        return Response(path.read_bytes(), media_type=kind)

    def cancel(self, request: Request) -> Response:
        """End a job, and go back to its page."""
        form = form_of(request)
        job = self.workspace.jobs.get(form.get("job", ""))
        if job is not None:
            job.cancel()
        page = form.get("page", "")
        return self.back(request, page if page in _RUNNING else "tables", job=form.get("job"))

    async def events(self, request: Request) -> Response:
        """Send the progress of a job until it is over."""
        return StreamingResponse(self._progress(request), media_type="text/event-stream")

    async def _progress(self, request: Request) -> AsyncIterator[str]:
        job, before = self.running(request), ""
        while job is not None:
            is_over = job.is_over  # before what is final then
            state = {"steps": job.steps, "share": job.share, "version": job.version}
            found = json.dumps({**state, "over": is_over})
            if found != before:
                yield f"data: {found}\n\n"
            if is_over:
                return
            before = found
            await asyncio.sleep(_BETWEEN)
        yield 'data: {"steps": [], "share": null, "version": 0, "over": true}\n\n'


_RUNNING = ("curve", "preview", "publish", "refresh", "report")
"""Pages that show a job."""


def _shown(pages: Studio) -> dict[str, Callable[[Request], object]]:
    """Return what is shown at each address."""
    return {
        "": pages.tables,
        "enter": pages.enter,
        "files/{name}": pages.file,
        "events": pages.events,
        "taxonomy": pages.export_tree,
        "tables": pages.tables,
        "columns": pages.columns,
        "column": pages.column,
        "curve": pages.curve,
        "preview": pages.preview,
        "publish": pages.publish,
        "releases": pages.releases,
        "refresh": pages.refresh,
        "policy": pages.policy,
        "report": pages.report,
    }


def _done(pages: Studio) -> dict[str, Callable[[Request], object]]:
    """Return what the forms do that are sent to each address."""
    return {
        "install": pages.install,
        "columns": pages.set_roles,
        "column": pages.set_column,
        "derive": pages.derive,
        "import_tree": pages.import_tree,
        "policy": pages.set_text,
        "undo": pages.undo,
        "save": pages.save,
        "approve": pages.approve,
        "curve": pages.start_curve,
        "take": pages.take,
        "preview": pages.start_preview,
        "publish": pages.start_publish,
        "refresh": pages.start_refresh,
        "report": pages.start_report,
        "readers": pages.readers,
        "schedule": pages.schedule,
        "cancel": pages.cancel,
    }


def make(access: Access, workspace: Workspace) -> ASGIApp:
    """Return the studio as an application behind its gate."""
    pages = Studio(access, workspace)
    routes = [Route(f"/{name}", action, methods=["GET"]) for name, action in _shown(pages).items()]
    routes += [Route(f"/{name}", action, methods=["POST"]) for name, action in _done(pages).items()]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        workspace.jobs.prepare()
        yield
        workspace.jobs.end()

    app = Starlette(
        routes=[Mount(access.base, routes=routes)],
        exception_handlers={DbanonError: pages.failed},
        lifespan=lifespan,
    )
    return Gate(app, access, refuse=pages.refused, failed=pages.broken)


def bound(address: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; raises ConfigError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address, port))
    except OSError as error:
        found.close()
        message = f"cannot listen on {address}, port {port}: {error.strerror}"
        raise ConfigError(message, hint="dbanon studio --port 0 takes a free port") from None
    return found


def _origin(address: str, port: int, *, is_secure: bool) -> str:
    """Return the origin as browsers spell it, without the usual port."""
    place = f"[{address}]" if ":" in address else address.lower()
    scheme, usual = ("https", 443) if is_secure else ("http", 80)
    return f"{scheme}://{place}" + ("" if port == usual else f":{port}")


def serve(
    workspace: Workspace,
    *,
    address: str = LOCAL,
    port: int = 0,
    tls: tuple[Path, Path] | None = None,
    opened: Callable[[Access], None],
) -> None:
    """Serve the studio until the process is interrupted; opened: called once it listens."""
    with closing(bound(address, port)) as listening:
        listening.listen()
        access = Access(_origin(address, listening.getsockname()[1], is_secure=tls is not None))
        config = uvicorn.Config(
            make(access, workspace),
            log_config=None,
            access_log=False,
            log_level="critical",
            server_header=False,
            proxy_headers=False,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=1,
            ssl_certfile=None if tls is None else tls[0],
            ssl_keyfile=None if tls is None else tls[1],
        )
        config.load()
        opened(access)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def show(access: Access) -> None:
    """Open the address in a browser, by a file: arguments of programs are visible to everybody."""
    folder = Path(tempfile.mkdtemp(prefix="dbanon-studio-"))  # readable by its owner only
    file = folder / "open.html"
    target = html.escape(access.address, quote=True)
    text = f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={target}">'
    file.write_text(text, encoding="utf-8")
    timer = Timer(_OPENED, rmtree, (folder, True))
    timer.daemon = True
    timer.start()
    with suppress(webbrowser.Error):
        webbrowser.open(file.as_uri())
