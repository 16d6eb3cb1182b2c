"""A visitor of the studio, without a browser and without a socket."""

import asyncio
import re
from contextlib import contextmanager, suppress
from functools import partial
from queue import Queue
from threading import Thread
from urllib.parse import urlencode, urlsplit

from dbanon.actions.policy import policy_approval
from dbanon.domain.errors import DbanonError
from dbanon.studio import serving
from dbanon.studio.gate import Access
from dbanon.studio.serving import make
from dbanon.studio.workspace import Workspace

ORIGIN = "http://127.0.0.1:8765"
FORM = "application/x-www-form-urlencoded"


@contextmanager
def served(monkeypatch, workspace, **options):
    """Serve a studio from a thread, and yield its access."""
    servers, accesses = [], Queue()

    class Server(serving.uvicorn.Server):
        def __init__(self, config):
            super().__init__(config)
            servers.append(self)

    monkeypatch.setattr(serving.uvicorn, "Server", Server)
    serve = partial(serving.serve, workspace, opened=accesses.put, **options)
    thread = Thread(target=serve, daemon=True)
    thread.start()
    yield accesses.get(timeout=30)
    servers[0].should_exit = True
    thread.join(30)
    assert not thread.is_alive()


class Answer:
    """What a visitor was answered."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        """The body as text."""
        return self.body.decode()


def ask(app, method, path, *, headers, body=b""):
    """Send one request to an application; headers: with those of a browser."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers],
        "server": ("127.0.0.1", 8765),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }
    found = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        found.append(message)

    asyncio.run(app(scope, receive, send))
    start = found[0]
    kept = {k.decode(): v.decode() for k, v in start["headers"]}
    return Answer(start["status"], kept, b"".join(m.get("body", b"") for m in found[1:]))


class Visitor:
    """The browser that was admitted to a studio."""

    def __init__(self, settings, **options):
        self.access = Access(ORIGIN)
        self.workspace = Workspace(settings, patience=120.0, **options)
        self.app = make(self.access, self.workspace)
        address = urlsplit(self.access.address)
        entered = ask(
            self.app, "GET", f"{address.path}?{address.query}", headers=[("Host", self.access.host)]
        )
        self.cookie = entered.headers["set-cookie"].partition(";")[0]

    @property
    def headers(self):
        """Those of its own requests."""
        return [("Host", self.access.host), ("Cookie", self.cookie)]

    def address(self, page, **query):
        """Return the path of a page."""
        return f"{self.access.base}/{page}" + (f"?{urlencode(query)}" if query else "")

    def get(self, page, **query):
        """Open a page, which shows no object as Python writes it."""
        answer = ask(self.app, "GET", self.address(page, **query), headers=self.headers)
        assert not re.search(rb"\b[A-Z]\w*\(\w+=", answer.body), page
        return answer

    def post(self, page, /, *, sent_by=None, **fields):
        """Send a form of a page, as just opened; sent_by: the page's address, if it is sent."""
        if "table" in fields:
            with suppress(DbanonError):  # of a role without rights
                fields = {"of": self.workspace.draft(fields["table"]).mark, **fields}
                if page == "publish":
                    fields = {"shown": self._shown(fields["table"]), **fields}
        body = urlencode({"csrf": self.access.form, **fields}).encode()
        headers = [*self.headers, ("Origin", ORIGIN), ("Content-Type", FORM)]
        headers += [("Referer", f"{self.access.origin}{sent_by}")] if sent_by else []
        return ask(self.app, "POST", f"{self.access.base}/{page}", headers=headers, body=body)

    def _shown(self, table):
        return policy_approval(table, settings=self.workspace.settings).digest

    def result(self, answer):
        """Wait for the job that a form has started, and return it."""
        number = re.search(r"job=([\w-]+)", answer.headers["location"])[1]
        job = self.workspace.jobs.get(number)
        job.process.join(300)
        while not job.is_over:
            job.process.join(0.1)
        return job

    def follow(self, answer):
        """Open the page that a form leads to."""
        where, _, _ = answer.headers["location"].partition("#")
        return ask(self.app, "GET", where, headers=self.headers)
