"""Pages of releases: who reads them, their history and their schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dbanon.actions.jobs.schedules import list_schedules, remove_schedule, set_schedule
from dbanon.actions.policy import policy_history
from dbanon.actions.releases.grant import grant, readers_of, revoke
from dbanon.actions.releases.ledger import list_releases
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.studio.pages import Pages, Target, form_of, names_of
from dbanon.studio.searches import of_cells

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class ReleasePages(Pages):
    """Pages about what was published."""

    def releases(self, request: Request) -> Response:
        """Show the releases of a table, what they disclose together, and its schedule."""
        _, values = self.of_table(request, "releases")
        target = Target.of(request)
        settings = self.workspace.settings
        found = list_releases(target.name, settings=settings)
        served = [one for one in found if one.served]
        past, problem = self.past(target.name) if found else (None, None)
        return self.render(
            "releases.html",
            values,
            served=served,
            readers=readers_of([one.relation for one in served], settings=settings),
            past=past,
            of_cells=of_cells,
            problem=problem,
            now=datetime.now(UTC),
            grace=timedelta(minutes=2),  # in which a running worker begins what is due
            events=policy_history(target.name, settings=settings),
            schedules=[s for s in list_schedules(settings=settings) if s.table == target.name],
        )

    def readers(self, request: Request) -> Response:
        """Grant or revoke access to a relation."""
        target, form = Target.of(request), form_of(request)
        relation = TableName.parse(form.get("relation", ""))
        roles = names_of(form.get("roles", ""))
        if not roles:
            raise ConfigError("no role is named", hint="name the roles, separated by spaces")
        is_less = bool(form.get("revoke"))
        changed = (revoke if is_less else grant)(relation, roles, settings=self.workspace.settings)
        self.workspace.note(command(f"dbanon {'revoke' if is_less else 'grant'}", relation, *roles))
        may = "may no longer read" if is_less else "may now read"
        notices = [f"{', '.join(roles)} {may} {one.relation}" for one in changed]
        notices += [str(remark) for one in changed for remark in one.remarks]
        return self.go("releases", target, notices=notices)

    def schedule(self, request: Request) -> Response:
        """Set or remove the schedule of a table."""
        target, form = Target.of(request), form_of(request)
        if form.get("remove"):
            remove_schedule(target.name, settings=self.workspace.settings)
            self.workspace.note(command("dbanon schedule remove", target.name))
            return self.go("releases", target, notices=["the schedule is removed"])
        cron, zone = form.get("cron", ""), form.get("zone") or "UTC"
        stored = set_schedule(target.name, cron, zone=zone, settings=self.workspace.settings)
        options = command("--cron", cron) + (f" {command('--zone', zone)}" if zone != "UTC" else "")
        self.workspace.note(command("dbanon schedule set", target.name, options=options))
        notice = f"next refresh: {stored.next_due:%Y-%m-%d %H:%M %Z}"
        return self.go("releases", target, notices=[notice])
