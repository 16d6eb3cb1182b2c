"""Pages of tables, columns, taxonomies and policies."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tomli_w
from starlette.responses import PlainTextResponse

from dbanon.actions.init import init
from dbanon.actions.inspect import outline, source_rows
from dbanon.actions.policy import approve_policy, set_policy
from dbanon.actions.releases.ledger import list_releases
from dbanon.actions.tables import list_tables
from dbanon.actions.taxonomy import (
    DERIVATIONS,
    derive_taxonomy,
    export_taxonomy,
    import_text,
    list_taxonomies,
    load_taxonomy,
)
from dbanon.domain.errors import ConfigError, DbanonError, SchemaOutOfDate
from dbanon.domain.messages import RECODED, approval_in_words
from dbanon.domain.policy import PERIODS, Role, policy_option
from dbanon.domain.text import command
from dbanon.formats import policies
from dbanon.formats.taxonomies import render_tree
from dbanon.pages.figures import percent
from dbanon.pages.rendering import Bar, Ink
from dbanon.studio.pages import Pages, Target, as_field, form_of, names_of, template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from dbanon.actions.inspect import InspectedColumn, Profile
    from dbanon.domain.policy import ColumnRule, Policy

_FEW = "fewer than {} rows"  # in place of a number
_SMALL = 4  # values of a column next to its role
_NUMBERS = {
    "bands": "Width of bands",
    "top": "One band from",
    "bottom": "One band below",
    "snap": "Round bounds to",
    "weight": "Weight of its loss",
}
"""The keys of a column that are numbers, with their labels."""
_KEYS = ("role", "recoding", "taxonomy", "at_least", *_NUMBERS, "rare")
"""The keys of a column that its form has; the others stay as they are."""


class TablePages(Pages):
    """Pages about what is in the database, and what the policy makes of it."""

    _rendered: tuple[Profile, Mapping[str, Markup]] | None = None  # of the table shown last

    def tables(self, _request: Request) -> Response:
        """Show all tables, and read each again when it is opened next."""
        self.workspace.forget_profiles()
        try:
            found = list_tables(settings=self.workspace.settings)
        except SchemaOutOfDate as error:
            return self.render("install.html", message=str(error))
        releases = list_releases(settings=self.workspace.settings)
        datasets = sorted({one.dataset for one in releases if one.served and one.dataset})
        drafted = self.workspace.unsaved()
        return self.render(
            "tables.html", tables=found, datasets=datasets, as_field=as_field, drafted=drafted
        )

    def install(self, _request: Request) -> Response:
        """Install or upgrade the metadata schema."""
        init(self.workspace.settings)
        self.workspace.note("dbanon init")
        return self.go("tables")

    def columns(self, request: Request) -> Response:
        """Show the columns of a table, with a form of their roles.

        While they are described for the first time, their names are shown, and a request with the
        field ``wait`` is answered when this is done.
        """
        table = Target.of(request).table
        waits = None if request.query_params.get("wait") else self.workspace.patience
        if not self.workspace.is_profiled(table, within=waits):
            shown = outline(table, settings=self.workspace.settings)
            return self.render("reading.html", shown=shown, table=Target.of(request))
        draft, values = self.of_table(request, "columns")
        profile = self.workspace.profile(table)
        found, policy = profile.inspection.columns, draft.policy
        named = {rule.column for rule in policy.columns}
        return self.render(
            "columns.html",
            values,
            profile=profile,
            columns={one.info.name: one for one in found},
            cells=self._cells(profile),
            added=[] if policy.rest else sorted({one.info.name for one in found} - named),
            roles=[*Role],
        )

    def _cells(self, profile: Profile) -> Mapping[str, Markup]:
        """Return the cells of each column that do not depend on the draft."""
        if self._rendered is None or self._rendered[0] is not profile:
            found: Any = template("parts.html").module
            cells = {
                one.info.name: found.cells(
                    one, _most_frequent(bars_of(profile, one)), nulls_of(profile, one)
                )
                for one in profile.inspection.columns
            }
            self._rendered = profile, cells
        return self._rendered[1]

    def set_roles(self, request: Request) -> Response:
        """Take the roles of all columns, and go on if that was pressed."""
        target, form = Target.of(request), form_of(request)
        draft = self.draft(request)
        document = tomllib.loads(draft.text)
        suggested = {
            one.info.name: one for one in self.workspace.profile(target.table).inspection.columns
        }
        for place, rule in enumerate(draft.policy.columns):
            role = form.get(f"role-{place}", rule.role)
            if role != rule.role:
                document["columns"][rule.column] = _of_role(role, suggested.get(rule.column))
        draft.change(policies.parse(tomli_w.dumps(document)))
        return self.go("curve" if form.get("page") == "curve" else "columns", target)

    def column(self, request: Request) -> Response:
        """Show one column, with a form of its rule."""
        draft, values = self.of_table(request, "columns")
        name = request.query_params.get("column", "")
        rule = draft.rule(name)
        profile = self.workspace.profile(Target.of(request).table)
        profile.inspection.info.column(name)  # raises TableNotFound if it is gone
        inspected = next(one for one in profile.inspection.columns if one.info.name == name)
        trees = sorted({row["name"] for row in list_taxonomies(settings=self.workspace.settings)})
        return self.render(
            "column.html",
            values,
            rule=rule,
            inspected=inspected,
            profile=profile,
            bars=bars_of(profile, inspected),
            nulls=nulls_of(profile, inspected),
            roles=[*Role],
            numbers=_NUMBERS,
            recodings=RECODED,
            periods=PERIODS,
            taxonomies=trees,
            tree=self._tree(rule.taxonomy),
            derivations=DERIVATIONS,
        )

    def _tree(self, name: str | None) -> str:
        if name is not None:
            with suppress(DbanonError):
                found = load_taxonomy(name, settings=self.workspace.settings)
                return "\n".join(render_tree(found))
        return ""

    def set_column(self, request: Request) -> Response:
        """Take the rule of a column."""
        target, form = Target.of(request), form_of(request)
        draft, name = self.draft(request), form.get("column", "")
        draft.rule(name)
        document = tomllib.loads(draft.text)
        kept = {k: v for k, v in document["columns"][name].items() if k not in _KEYS}
        document["columns"][name] = kept | _rule(form)
        draft.change(policies.parse(tomli_w.dumps(document)))
        return self.go("column", target, column=name)

    def derive(self, request: Request) -> Response:
        """Store a taxonomy of the values of a column, and use it."""
        target, form = Target.of(request), form_of(request)
        name, column, kind = (form.get(key, "") for key in ("name", "column", "kind"))
        widths = [_width(word) for word in names_of(form.get("widths", ""))]
        chosen = next((one for one in DERIVATIONS if one == kind), DERIVATIONS[0])
        rule = self.draft(request).rule(column)
        settings = self.workspace.settings
        derive_taxonomy(
            name, column, table=target.table, kind=chosen, widths=widths, settings=settings
        )
        options = f"--kind {kind}" + "".join(f" --width {width:g}" for width in widths)
        self.workspace.note(
            command("dbanon taxonomy derive", name, target.name, column, options=options)
        )
        return self._use(request, rule, name)

    def import_tree(self, request: Request) -> Response:
        """Store a taxonomy from CSV text, and use it."""
        form = form_of(request)
        name, column = form.get("name", ""), form.get("column", "")
        rule = self.draft(request).rule(column)
        import_text(name, form.get("csv", ""), settings=self.workspace.settings)
        self.workspace.note(command("dbanon taxonomy import", name, f"{name}.csv"))
        return self._use(request, rule, name)

    def export_tree(self, request: Request) -> Response:
        """Return a taxonomy as CSV."""
        name = request.query_params.get("name", "")
        return PlainTextResponse(export_taxonomy(name, settings=self.workspace.settings))

    def _use(self, request: Request, rule: ColumnRule, taxonomy: str) -> Response:
        draft = self.draft(request)
        draft.change(draft.with_rule(replace(rule, taxonomy=taxonomy)))
        return self.go("column", Target.of(request), column=rule.column)

    def policy(self, request: Request) -> Response:
        """Show the draft as TOML, to edit, to save, to copy, and to approve as stored."""
        target = Target.of(request)
        approval = self.approval(target)  # before the text, which may be newer
        _, values = self.of_table(request, "policy")
        shown = {}
        if self.workspace.show_source:
            shown = source_rows(target.table, settings=self.workspace.settings)
        return self.render(
            "policy.html",
            values,
            source=[*shown],
            source_rows=[*zip(*shown.values(), strict=True)],
            approval=approval,
            state=None if approval is None else approval_in_words(approval),
        )

    def approve(self, request: Request) -> Response:
        """Approve the stored version that the page showed."""
        target, digest = Target.of(request), form_of(request).get("digest", "")
        settings = self.workspace.settings
        found = approve_policy(target.name, name=target.policy, digest=digest, settings=settings)
        options = " ".join(
            filter(None, [command("--digest", digest), policy_option(target.policy)])
        )
        self.workspace.note(command("dbanon policy approve", target.name, options=options))
        return self.go("policy", target, notices=[approval_in_words(found)])

    def set_text(self, request: Request) -> Response:
        """Take the policy as TOML."""
        target, form = Target.of(request), form_of(request)
        draft, given = self.draft(request), policies.parse(form.get("text", ""))
        draft.change(replace(given, table=target.name, name=target.policy))
        return self.go("policy", target)

    def undo(self, request: Request) -> Response:
        """Undo or redo a change of the draft."""
        target, form = Target.of(request), form_of(request)
        self.draft(request).move(1 if form.get("redo") else -1)
        return self.go("policy" if form.get("page") == "policy" else "columns", target)

    def save(self, request: Request) -> Response:
        """Store the draft, under its name or another."""
        target, form = Target.of(request), form_of(request)
        named = Target(target.table, form.get("save_as") or target.policy)
        draft = self.draft(request)
        replaced = [draft.stored] if draft.stored and named.policy == target.policy else []
        given: Policy = replace(draft.policy, name=named.policy)
        notices = ["the policy is stored"]
        stored = set_policy(
            target.table,
            given,
            name=named.policy,
            shown=policies.digest(*replaced),
            warn=lambda warning: notices.append(str(warning)),
            settings=self.workspace.settings,
        )
        options = " ".join(filter(None, [f"--file {target.file}", policy_option(named.policy)]))
        self.workspace.note(command("dbanon policy set", target.name, options=options))
        self.workspace.saved(target.table, target.policy, stored)
        page = "publish" if form.get("page") == "publish" else "policy"
        return self.go(page, named, notices=notices)


def bars_of(profile: Profile, column: InspectedColumn) -> tuple[Bar, ...]:
    """Return the shares of frequent values in all rows, then of all others, and of NULL."""
    stats, values = column.stats, profile.values.get(column.info.name, ())
    if stats is None or not stats.n_rows:
        return ()

    def bar(ink: Ink, rows: int, label: str) -> Bar:
        few = rows < profile.least
        share = 0.0 if few else rows / stats.n_rows
        return Bar(ink, share, _FEW.format(profile.least) if few else f"{share:.1%}", label=label)

    bars = [bar(Ink.USE, one.rows, one.label or "''") for one in values]
    rest = stats.n_rows - stats.n_null - sum(one.rows for one in values)
    others = {f"others, and values of fewer than {profile.least} rows": rest, "NULL": stats.n_null}
    bars += [bar(Ink.SOURCE, rows, label) for label, rows in others.items() if rows]
    return tuple(bars)


def nulls_of(profile: Profile, column: InspectedColumn) -> str:
    """Return the share of NULLs, without a number below the least one."""
    stats = column.stats
    if stats is None or not stats.n_rows:
        return "-"
    if 0 < stats.n_null < profile.least:
        return _FEW.format(profile.least)
    return percent(stats.n_null / stats.n_rows)


def _most_frequent(bars: tuple[Bar, ...]) -> list[Bar]:
    """Return the longest bars of values, in their order."""
    values = [bar for bar in bars if bar.ink is Ink.USE]
    longest = sorted(values, key=lambda bar: -(bar.share or 0.0))[:_SMALL]
    return [bar for bar in values if bar in longest]


def _of_role(role: str, column: InspectedColumn | None) -> dict[str, object]:
    """Return the keys of a column with another role: the suggested ones if it is a quasi."""
    keys: dict[str, object] = {"role": role}
    if role == Role.QUASI and column is not None and column.proposal is not None:
        keys |= {"recoding": column.proposal.recoding, **column.proposal.floor}
    return keys


def _rule(form: Mapping[str, str]) -> dict[str, object]:
    """Return the keys of a column from its form; what is empty is left out."""
    given = {key: form[key].strip() for key in _KEYS if form.get(key, "").strip()}
    numbers = {*_NUMBERS, "at_least"}
    return {key: _number(text) if key in numbers else text for key, text in given.items()}


def _width(text: str) -> float:
    """Return the width of an interval; raises ConfigError."""
    with suppress(ValueError):
        return float(text)
    raise ConfigError("widths are numbers", hint="separate several by spaces, such as 5 10 20")


def _number(text: str) -> int | float | str:
    """Return a number, or the text for the reader of policies to name as a problem."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
