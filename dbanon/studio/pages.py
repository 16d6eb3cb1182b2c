"""Render the pages of the studio, with what all of them share."""

from __future__ import annotations

import json
import os
import re
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import HTMLResponse, RedirectResponse, Response

from dbanon.actions.policy import policy_approval
from dbanon.actions.releases.ledger import history
from dbanon.domain.errors import DbanonError, PolicyError
from dbanon.domain.policy import DEFAULT_NAME
from dbanon.domain.table import TableName
from dbanon.pages.rendering import TEMPLATES, environment
from dbanon.studio.workspace import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jinja2 import Template
    from starlette.requests import Request

    from dbanon.actions.releases.ledger import History
    from dbanon.domain.policy import Approval
    from dbanon.studio.gate import Access, Refusal
    from dbanon.studio.jobs import Job
    from dbanon.studio.workspace import Draft, Workspace

_FOLDER = Path(__file__).parent
_SEE_OTHER = 303
_WRONG, _BROKEN = 400, 500
TABS = {
    "columns": "Columns",
    "curve": "Trade-off",
    "preview": "Preview",
    "publish": "Publish",
    "releases": "Releases",
    "policy": "Policy",
}
"""The pages of a table, in the order of use."""
FILES = {
    "style.css": (TEMPLATES / "style.css", "text/css"),
    "studio.css": (_FOLDER / "static/studio.css", "text/css"),
    "studio.js": (_FOLDER / "static/studio.js", "text/javascript"),
}


def template(name: str) -> Template:
    """Return a template of the studio."""
    return environment(_FOLDER / "templates").get_template(name)


class PolicyChanged(PolicyError):
    """The draft of a form is not the present one any more."""

    def __init__(self) -> None:
        super().__init__(
            "the policy was changed since this page was shown", hint="look at it again"
        )


class Pages:
    """What the pages of a studio are made of; each has a request as its only argument."""

    def __init__(self, access: Access, workspace: Workspace) -> None:
        self.access, self.workspace = access, workspace

    def url(self, page: str, **query: object) -> str:
        """Return the address of a page."""
        given = {name: value for name, value in query.items() if value not in {None, ""}}
        return f"{self.access.base}/{page}" + (f"?{urlencode(given)}" if given else "")

    def render(
        self,
        name: str,
        values: Mapping[str, object] | None = None,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        **others: object,
    ) -> HTMLResponse:
        """Return a page; values, others: what its template, of this name, shows."""
        known: dict[str, Any] = {
            "layout": "frame.html",
            "url": self.url,
            "csrf": self.access.form,
            "tabs": TABS,
            "commands": self.workspace.commands,
            "notices": (),
            "entry": None,
            "target": None,
            "reported": None,
            "draft": None,
            "active": "",
        }
        page = template(name).render(**{**known, **(values or {}), **others})
        return HTMLResponse(page, status, headers)

    def of_table(self, request: Request, active: str) -> tuple[Draft, dict[str, object]]:
        """Return the draft that a page is about, and what its frame shows."""
        target, draft = Target.of(request), self.draft(request)
        # The mark first: forms of a draft that changes while its page is made are refused.
        shown = {"mark": draft.mark, "target": target, "draft": draft, "active": active}
        return draft, {**shown, **self.kept(request)}

    def kept(self, request: Request) -> dict[str, object]:
        """Return what was kept for the page of this address to show."""
        notices, entry = self.workspace.notices.get(
            request.query_params.get("notices", ""), ((), None)
        )
        return {"notices": notices, "entry": entry and replace(entry)}

    def draft(self, request: Request) -> Draft:
        """Return the draft that a page is about, for a form only the one that its page showed.

        Raises PolicyError if another page, or another person, has changed it since.
        """
        target = Target.of(request)
        draft = self.workspace.draft(target.table, target.policy)
        if request.method == "POST" and form_of(request).get("of") != draft.mark:
            raise PolicyChanged
        return draft

    def approval(self, target: Target) -> Approval | None:
        """Return the stored version of a policy, None if there is none."""
        settings = self.workspace.settings
        with suppress(PolicyError):
            return policy_approval(target.name, name=target.policy, settings=settings)
        return None

    def past(self, table: TableName) -> tuple[History | None, str | None]:
        """Return the history of a table, or why it cannot be read."""
        try:
            return history(table, settings=self.workspace.settings), None
        except DbanonError as error:
            return None, str(error)

    def go(
        self,
        page: str,
        target: Target | None = None,
        *,
        notices: Sequence[str] = (),
        **query: object,
    ) -> RedirectResponse:
        """Send the browser to a page, which shows the notices."""
        where = {} if target is None else target.query
        key = self.workspace.keep(notices) if notices else None
        return RedirectResponse(self.url(page, **where, **query, notices=key), _SEE_OTHER)

    def back(self, request: Request, page: str, job: str | None) -> RedirectResponse:
        """Send the browser to the page of a job, about the table, relation or dataset of a form."""
        form = form_of(request)
        if "table" in form:
            return self.go(page, Target.of(request), job=job)
        return self.go(page, job=job, relation=form.get("relation"), dataset=form.get("dataset"))

    def running(self, request: Request) -> Job | None:
        """Return the job that a page shows, None if it names none that is known."""
        return self.workspace.jobs.get(request.query_params.get("job", ""))

    def refused(self, refusal: Refusal) -> Response:
        """Return the page of a refused request, which tells nothing of the studio.

        It ends the connection: who sends requests and reads no answers would hold it for long.
        """
        page = template("refused.html").render(refusal=refusal)
        return HTMLResponse(page, refusal.status, {"Connection": "close"})

    def failed(self, request: Request, error: Exception) -> Response:
        """Show the page of a form again, with what was entered and the error that it caused."""
        hint = error.hint if isinstance(error, DbanonError) else None
        place = urlsplit(request.headers.get("referer", ""))
        own = f"{place.scheme}://{place.netloc}" == self.access.origin
        if request.method != "POST" or not own or not place.path.startswith(f"{self.access.base}/"):
            return self.render("failed.html", status=_WRONG, message=str(error), hint=hint)
        # What was entered for another draft would undo in this one what is not looked at.
        fields = {} if isinstance(error, PolicyChanged) else form_of(request)
        action = request.url.path.rpartition("/")[2]
        key = self.workspace.keep((), Entry(action, fields, str(error), hint))
        query = [pair for pair in parse_qsl(place.query) if pair[0] != "notices"]
        where = f"{place.path}?{urlencode([*query, ('notices', key)])}#entry"
        return RedirectResponse(where, _SEE_OTHER)

    def broken(self, error: Exception) -> Response:
        """Return the page of an unexpected error, by its type: its text may quote a row."""
        if os.environ.get("DBANON_DEBUG"):
            traceback.print_exception(error)
        return self.render(
            "failed.html",
            status=_BROKEN,
            message=f"unforeseen {type(error).__name__}",
            hint="DBANON_DEBUG=1 dbanon studio, which may print values",
        )


class Target:
    """A table and the name of a policy, as addresses and forms give them."""

    def __init__(self, table: str, policy: str) -> None:
        self.name = TableName.parse(table)
        self.table, self.policy = str(self.name), policy

    @classmethod
    def of(cls, request: Request) -> Target:
        """Return that of a request; raises ConfigError for what is no name."""
        given = form_of(request) if request.method == "POST" else request.query_params
        return cls(given.get("table", ""), given.get("policy") or DEFAULT_NAME)

    @property
    def file(self) -> str:
        """The name of the draft as a file, the same in a shell and as a download."""
        return (re.sub(r"[^\w.-]+", "_", self.name.name).lstrip("-.") or "policy") + ".toml"

    @property
    def query(self) -> dict[str, str]:
        """The fields of an address or a form."""
        named = {} if self.policy == DEFAULT_NAME else {"policy": self.policy}
        return {"table": self.table, **named}


def as_field(names: Iterable[object]) -> str:
    """Return the names of tables as one field of a form or an address, without control codes."""
    return json.dumps([str(name) for name in names])


def names_of(text: str) -> list[str]:
    """Return the words of a field, separated by spaces or commas."""
    return text.replace(",", " ").split()


def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form, which the gate has read."""
    fields: dict[str, str] = request.scope.get("state", {}).get("form", {})
    return fields
