"""Admit only the browser that was given the address, and only requests of its own pages."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hmac import compare_digest
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_BODY = 4 << 20  # bytes of a form; a taxonomy of 100,000 leaves has about half
_MOST_FIELDS = 5_000
_IDLE = 8 * 3600.0  # seconds without a request after which the browser has to be admitted again
_UNUSED = 600.0  # seconds in which the printed address must be opened
_COOKIE = "dbanon_studio"
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer."""


@dataclass(slots=True)
class Access:
    """The secrets of one studio.

    origin: scheme, host and port of its pages; base: first part of every path, which keeps the
    cookie from other ports of this machine; token: of the printed address, for one use; cookie: of
    the browser that used it; form: sent with every form; clock: seconds.
    """

    origin: str
    base: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(16)}")
    token: str | None = field(default_factory=secrets.token_urlsafe)
    cookie: str = field(default_factory=secrets.token_urlsafe)
    form: str = field(default_factory=secrets.token_urlsafe)
    clock: Callable[[], float] = monotonic
    _since: float = 0.0

    def __post_init__(self) -> None:
        self._since = self.clock()

    @property
    def address(self) -> str:
        """The address to open, which works once."""
        return f"{self.origin}{self.base}/enter?token={self.token}"

    @property
    def host(self) -> str:
        """The host and port that a request must name."""
        return urlsplit(self.origin).netloc

    def admit(self, token: str) -> str | None:
        """Return the cookie for the token of the printed address, None if it is not valid."""
        is_new = self.token is not None and self.clock() - self._since <= _UNUSED
        if not is_new or not compare_digest(token.encode(), (self.token or "").encode()):
            return None
        self.token, self._since = None, self.clock()
        attributes = f"Path={self.base}/; HttpOnly; SameSite=Strict"
        secure = "; Secure" if self.origin.startswith("https:") else ""
        return f"{_COOKIE}={self.cookie}; {attributes}{secure}"

    def knows(self, header: str | None) -> bool:
        """Return True if a request has the cookie, and the browser was not idle for too long."""
        # Pages of other ports can add cookies of the same name, also malformed ones.
        sent = [pair.strip().partition("=") for pair in (header or "").split(";")]
        values = [value for name, _, value in sent if name == _COOKIE]
        known = any(compare_digest(value.encode(), self.cookie.encode()) for value in values)
        if not known or self.token is not None or self.clock() - self._since > _IDLE:
            return False
        self._since = self.clock()
        return True


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: the status, the reason, and what to do."""

    status: int
    reason: str
    hint: str


_FOREIGN = Refusal(403, "this request is not from a page of the studio", "open its own pages")
UNKNOWN = Refusal(
    403,
    "this browser is not admitted: the address was used before, or too long ago",
    "end dbanon studio with Ctrl-C, start it again and open the address that it prints",
)
_TOO_LONG = Refusal(413, "the form is too long", "import it on the command line")


class Gate:
    """The outermost layer: checks of every request, headers of every answer, no detail of errors.

    refuse: makes the page of a refusal; failed: of an unexpected error, given its type alone.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        *,
        refuse: Callable[[Refusal], Response],
        failed: Callable[[Exception], Response],
    ) -> None:
        self._app, self._access = app, access
        self._refuse, self._failed = refuse, failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun = False

        async def safe(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            answer = await self._answer(scope, receive)
            await answer(scope, receive, safe)
        except Exception as error:  # noqa: BLE001 - its text may quote a row, and would be logged
            if not begun:
                await self._failed(error)(scope, receive, safe)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp:
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            return self._refuse(refusal)
        if scope["method"] == "POST":
            body = await _body(receive)
            if body is None:
                return self._refuse(_TOO_LONG)
            sent = _fields(headers, body)
            if sent is None or not compare_digest(
                sent.get("csrf", "").encode(), self._access.form.encode()
            ):
                return self._refuse(_FOREIGN)
            scope.setdefault("state", {})["form"] = sent
        return self._app

    def _refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Return why a request is refused before its body is read, None if it is not."""
        access, path = self._access, scope["path"]
        if headers.getlist("host") != [access.host] or scope["method"] not in {"GET", "POST"}:
            return _FOREIGN
        if scope["method"] == "GET" and path == f"{access.base}/enter":
            return None  # the token admits, wherever the address was opened
        if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            return _FOREIGN
        if scope["method"] == "POST" and headers.getlist("origin") != [access.origin]:
            return _FOREIGN
        if not path.startswith(f"{access.base}/") or not access.knows(headers.get("cookie")):
            return UNKNOWN
        return None


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request, None if it is too long or the browser went away."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > LONGEST_BODY:
            return None
    return b"".join(parts)


def _fields(headers: Headers, body: bytes) -> dict[str, str] | None:
    """Return the fields of a form, the last of each name; None unless it is one."""
    if headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        return None
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        return None
    return dict(pairs)
