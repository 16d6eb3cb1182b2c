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
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.studio.datasets import DatasetPages
from dbanon.studio.gate import UNKNOWN, Access, Gate
from dbanon.studio.pages import FILES, form_of, template
from dbanon.studio.releases import ReleasePages
from dbanon.studio.tables import TablePages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from dbanon.studio.workspace import Workspace

LOCAL = "127.0.0.1"
_BETWEEN = 0.25  # seconds between two looks at a job
_MOST_IDLE = 32  # handshakes, and connections without a request; of more, the oldest is closed
_IDLE = 10.0  # seconds in which a connection must send a complete request, after its handshake
_OPENED = 30.0  # seconds after which the file that opens the browser is deleted


class Studio(TablePages, DatasetPages, ReleasePages):
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
            parts: Any = template("parts.html").module
            state = {"share": job.share, "version": job.version, "seconds": job.seconds}
            found = json.dumps({**state, "steps": str(parts.steps(job.steps)), "over": is_over})
            if found != before:
                yield f"data: {found}\n\n"
            if is_over:
                return
            before = found
            await asyncio.sleep(_BETWEEN)
        yield 'data: {"version": 0, "over": true}\n\n'


_RUNNING = ("curve", "preview", "publish", "refresh", "report", "dataset")
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
        "dataset": pages.dataset,
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
        "dataset_plan": pages.plan_dataset,
        "dataset_publish": pages.publish_dataset,
        "dataset_report": pages.report_dataset,
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


class Loop(asyncio.SelectorEventLoop):
    """An event loop in which a TLS handshake gets no more time than a request."""

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:  # noqa: ANN401 - as those of asyncio
        """Listen as every loop does."""
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = _IDLE
        return await super().create_server(*arguments, **options)


class Listener(socket.socket):
    """A listening socket that ends the oldest TLS handshake if too many are incomplete.

    connections: those of which the handshake, if any, is complete.
    """

    def __init__(self, family: socket.AddressFamily) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.connections: Collection[Any] = ()
        self._handshakes: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, of which no protocol knows before its handshake is complete."""
        found, address = super().accept()
        ready = [one.transport.get_extra_info("socket") for one in self.connections]
        made = {one.fileno() for one in ready if one is not None}  # None: it has just ended
        waiting = [one for one in self._handshakes if one.fileno() not in {-1, *made}]
        self._handshakes = [*waiting, found]
        if len(self._handshakes) > _MOST_IDLE:
            with suppress(OSError):  # the other side has closed it
                self._handshakes.pop(0).shutdown(socket.SHUT_RDWR)
        return found, address


class Connection(H11Protocol):
    """A connection that is closed if it sends no request, or if there are too many such ones.

    Any user of the machine can connect, and must not keep the owner of the studio out.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._wait()

    @property
    def is_idle(self) -> bool:
        """True before a request is complete, and after its answer, until it is closed."""
        is_done = self.cycle is None or self.cycle.response_complete
        return is_done and not self.transport.is_closing()

    def _wait(self) -> None:
        self.since = self.loop.time()
        self.loop.call_later(_IDLE, self._close_idle, self.since)
        idle = [one for one in self.connections if isinstance(one, Connection) and one.is_idle]
        if len(idle) > _MOST_IDLE:
            min(idle, key=lambda one: one.since).transport.close()

    def _close_idle(self, since: float) -> None:
        if self.is_idle and self.since == since:
            self.transport.close()


def bound(address: str, port: int) -> Listener:
    """Return a socket that is bound to an address; raises ConfigError."""
    found = Listener(socket.AF_INET6 if ":" in address else socket.AF_INET)
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
            http=Connection,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=1,
            ssl_certfile=None if tls is None else tls[0],
            ssl_keyfile=None if tls is None else tls[1],
        )
        config.load()
        server = uvicorn.Server(config)
        listening.connections = server.server_state.connections
        opened(access)
        with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(server.serve(sockets=[listening]))


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
