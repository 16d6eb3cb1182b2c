"""Pages whose results need a search: candidates, previews, publications, refreshes and reports."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dbanon.actions.compare import Compared, Comparison, comparisons
from dbanon.actions.plan import Preview, preview_request
from dbanon.actions.publish import publish_request
from dbanon.actions.refresh import Refreshed, refresh
from dbanon.actions.releases.grant import readers_of
from dbanon.actions.releases.report import report
from dbanon.actions.releases.sign_off import sign_off
from dbanon.domain.errors import ConfigError, PolicyError, Unsatisfiable
from dbanon.domain.messages import advice_on
from dbanon.domain.policy import AUTO, L_DIVERSITY, ModelSpec, policy_option
from dbanon.domain.report import Report, SignOff, TableReport
from dbanon.domain.table import TableName
from dbanon.domain.text import command
from dbanon.pages import comparison
from dbanon.pages import report as reports
from dbanon.pages import sign_off as sign_offs
from dbanon.pages.figures import asked, number, percent
from dbanon.pages.rendering import FIGURE, WORDS, Table
from dbanon.request import Request as Options
from dbanon.studio.pages import Pages, Target, form_of, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from dbanon.domain.outcomes import Stages
    from dbanon.domain.release import Composition, Release
    from dbanon.domain.report import Distribution
    from dbanon.studio.jobs import Job
    from dbanon.studio.workspace import Draft

SAMPLES = (600, 3_000, 12_000)
"""About how many rows of a larger table are compared, one sample after the other."""
USUAL_KS: tuple[int, ...] = (2, 5, 10, 25, 50, 100)
_EFFORT = "fast"  # of the algorithm auto on samples


class SearchPages(Pages):
    """Pages that start a job, show its progress, and then its result."""

    def begin(
        self,
        request: Request,
        title: str,
        action: Callable[..., object],
        *arguments: object,
        line: str,
    ) -> Response:
        """Start a job and go to the page that shows it; line: the command that does the same."""
        form = form_of(request)
        about = form.get("table") or form.get("relation") or form.get("dataset", "")
        noted = partial(self.workspace.note, line)
        job = self.workspace.jobs.start(title, about, action, *arguments, on_success=noted)
        page = request.url.path.rpartition("/")[2].partition("_")[0]
        return self.back(request, page, job=job.id)

    def _request(self, request: Request) -> Options:
        """Return a request for the draft."""
        policy = self.draft(request).policy
        return Options(policy=policy.name, draft=policy, settings=self.workspace.settings)

    def curve(self, request: Request) -> Response:
        """Show loss and risk of several k, with a button to take each."""
        draft, values = self.of_table(request, "curve")
        job, shown = self.running(request), {}
        if job is not None and isinstance(job.result, Comparison) and job.result.results:
            sides = self._sides(request, job.result, draft.policy.k)
            shown = comparison.values_of(job.result) | sides
        compared = options_of(job)
        return self.render(
            "curve.html",
            {**shown, **values},
            job=job,
            policy=draft.policy,
            ks=compared.ks or USUAL_KS,
            least=compared.l or draft.policy.l,
            samples=SAMPLES,
        )

    def _sides(self, request: Request, found: Comparison, k: int) -> dict[str, object]:
        """Return two candidates side by side, by default those of the draft's k and the next."""
        done = [one for one in found.results if one.loss is not None]
        first = max(min(bisect_left([one.k for one in done], k), len(done) - 2), 0)
        wanted = [request.query_params.get(side, "") for side in ("a", "b")]
        chosen = [next((c for c in done if str(c.k) == k), None) for k in wanted]
        pair = [c or other for c, other in zip(chosen, done[first:], strict=False)]
        return {"done": done, "pair": pair, "sides": side_by_side(pair), "answers": answered(pair)}

    def start_curve(self, request: Request) -> Response:
        """Compare values of k on samples, or on all rows as a publication groups them."""
        target, form = Target.of(request), form_of(request)
        ks = sorted({count(word, "k") for word in names_of(form.get("ks", ""))})
        policy, whole = self.draft(request).policy, bool(form.get("all"))
        options = replace(self._request(request), ks=tuple(ks), algorithms=(policy.algorithm,))
        given = f"--compare --algorithms {policy.algorithm} --ks {','.join(map(str, ks))}"
        if not whole and policy.algorithm == AUTO:
            options = replace(options, effort=_EFFORT)
            given += f" --effort {_EFFORT}"
        least = form.get("l", "").strip()
        if least:
            options = replace(options, l=count(least, "l"))
            given += f" --l {least}"
        line = command("dbanon plan", target.name, options=f"--file {target.file} {given}")
        samples: tuple[int | None, ...] = (None,) if whole else SAMPLES
        title = "compare all rows" if whole else "compare samples of rows"
        return self.begin(request, title, tried, target.table, options, samples, line=line)

    def take(self, request: Request) -> Response:
        """Take the k of a candidate, and its l, into the draft."""
        target, form = Target.of(request), form_of(request)
        draft = self.draft(request)
        policy = draft.policy.with_k(count(form.get("k", ""), "k"))
        least = count(form.get("l") or "1", "l")
        if least != policy.l:
            before = policy.model(L_DIVERSITY) or ModelSpec(L_DIVERSITY)
            policy = policy.with_models(replace(before, params={**before.params, "l": least}))
        draft.change(policy)
        return self.go("preview", target, notices=[f"the draft has k = {policy.k} now"])

    def preview(self, request: Request) -> Response:
        """Show rows as they would be published, and distributions before and after."""
        draft, values = self.of_table(request, "preview")
        job, shown = self.running(request), {}
        if job is not None and isinstance(job.result, Preview):
            shown = self._previewed(request, job.result, draft)
        return self.render("preview.html", {**shown, **values}, job=job)

    def _previewed(self, request: Request, found: Preview, draft: Draft) -> dict[str, object]:
        utility = found.report.utility
        distributions = () if utility is None else utility.distributions
        names = [one.column for one in distributions]
        column = request.query_params.get("column") or next(iter(names), None)
        now = found.report.now
        few = partial(frequent, n_rows=now.n_rows if now else 1, least=found.plan.policy.k)
        chosen = [few(one) for one in distributions if one.column == column]
        rows = tuple(tuple("NULL" if v is None else v for v in row) for row in found.rows)
        table = Table("Rows as readers would see them", dict.fromkeys(found.columns, WORDS), rows)
        return {
            "found": found,
            "rows": table,
            "names": names,
            "column": column,
            "before_after": [reports.distribution_table(one) for one in chosen],
            "lost": reports.loss_table("Detail lost by column", found.plan.loss.columns.items()),
            "facts": reports.facts(found.report),
            "advice": found.plan.advice or advice_on(found.plan.loss, found.plan.policy),
            "is_old": found.plan.policy.without_rest()
            != Options().over(draft.policy).without_rest(),
        }

    def start_preview(self, request: Request) -> Response:
        """Group the rows by the draft."""
        target = Target.of(request)
        line = command("dbanon plan", target.name, options=f"--file {target.file}")
        arguments = (search, preview_request, target.table, self._request(request))
        return self.begin(request, "group the rows by this draft", *arguments, line=line)

    def publish(self, request: Request) -> Response:
        """Show what would be published for whom, and then the proof."""
        draft, values = self.of_table(request, "publish")
        target, policy = Target.of(request), draft.policy
        models = [asked(spec) for spec in policy.models]
        relation = Options(policy=target.policy).view(target.name)
        job = self.running(request)
        release = job.result if job is not None else None
        served = [] if release is None else [release.relation]
        return self.render(
            "publish.html",
            values,
            job=job,
            release=release,
            proof=release and of_proof(release),
            readers=served and readers_of(served, settings=self.workspace.settings),
            sent=options_of(job),
            models=models,
            relation=relation,
            policy=policy,
            approval=self.approval(target),
        )

    def start_publish(self, request: Request) -> Response:
        """Publish by the stored policy."""
        target, form = Target.of(request), form_of(request)
        draft = self.draft(request)
        if not draft.is_saved:
            raise PolicyError("the draft is not stored", hint="save the policy, then publish")
        roles = tuple(names_of(form.get("roles", "")))
        kind = "view" if form.get("kind") == "view" else "table"
        options = Options(
            policy=target.policy,
            kind=kind,
            grants=roles,
            shown=(form.get("shown", ""),),
            settings=self.workspace.settings,
        )
        words = [policy_option(target.policy), *([] if kind == "table" else ["--as view"])]
        words += [command("--grant", role) for role in roles]
        given = " ".join(filter(None, words))
        line = command("dbanon publish", target.name, options=given)
        arguments = (search, publish_request, target.table, options)
        return self.begin(request, "publish and prove", *arguments, line=line)

    def refresh(self, request: Request) -> Response:
        """Show what a refresh would change, or has changed."""
        _, values = self.of_table(request, "releases")
        job = self.running(request)
        found: Sequence[Refreshed] = job.result if job is not None and job.result else ()
        return self.render("refresh.html", values, job=job, found=found)

    def start_refresh(self, request: Request) -> Response:
        """Refresh the releases of a table, or show what that would do."""
        target, form = Target.of(request), form_of(request)
        dry = bool(form.get("dry"))
        verb = "dbanon plan" if dry else "dbanon refresh"
        line = command(verb, target.name, options="--refresh" if dry else "")
        given = {"dry_run": dry, "settings": self.workspace.settings}
        title = "plan a refresh" if dry else "refresh"
        return self.begin(request, title, run, refresh, target.table, given, line=line)

    def report(self, request: Request) -> Response:
        """Show the report of a relation, or the page to sign."""
        job = self.running(request)
        relation = request.query_params.get("relation", "")
        found = None if job is None else job.result
        if isinstance(found, SignOff):
            return self.render("sign_off.html", sign_offs.values_of(found), reported=found.table)
        if isinstance(found, Report):
            return self.render("report.html", reports.values_of(found), reported=found.table)
        return self.render("report_of.html", job=job, relation=relation)

    def start_report(self, request: Request) -> Response:
        """Report a relation to its steward, to the public, or to the person who signs."""
        form = form_of(request)
        relation, public = str(TableName.parse(form.get("relation", ""))), bool(form.get("public"))
        given: dict[str, object] = {"settings": self.workspace.settings}
        signs = bool(form.get("sign_off"))
        action, option = (sign_off, "--sign-off") if signs else (report, "--public" * public)
        given |= {} if signs else {"public": public}
        line = command("dbanon report", relation, options=option)
        return self.begin(request, "report", run, action, relation, given, line=line)


def options_of(job: Job | None) -> Options:
    """Return the options of a job, for the form that started it to keep what was entered."""
    given = () if job is None else job.arguments
    return next((one for one in given if isinstance(one, Options)), Options())


def side_by_side(pair: Sequence[Compared]) -> Table | None:
    """Return the losses by column of candidates, next to each other."""
    losses = [one.loss for one in pair if one.loss is not None]
    if not losses:
        return None
    rows: list[tuple[str, ...]] = [
        (name, *(percent(loss.columns.get(name, 0.0)) for loss in losses))
        for name in losses[0].columns
    ]
    rows += [
        ("all columns (NCP)", *(percent(loss.ncp) for loss in losses)),
        ("classes", *(f"{loss.n_classes:,}" for loss in losses)),
        ("suppressed rows", *(f"{loss.n_suppressed:,}" for loss in losses)),
    ]
    for place, size in enumerate(("smallest", "median", "largest")):
        sizes = [number(one.sizes[place]) if one.sizes else "-" for one in pair]
        rows.append((f"rows of the {size} class", *sizes))
    heads = {"lost": WORDS} | {f"{i}: k = {one.k:,}": FIGURE for i, one in enumerate(pair, 1)}
    return Table("Two candidates side by side", heads, tuple(rows))


def frequent(found: Distribution, *, n_rows: int, least: int) -> Distribution:
    """Return a distribution without the values that fewer rows of the source have."""
    bins = zip(found.bins, found.source, found.published, strict=True)
    shown = [one for one in bins if not 0.0 < one[1] * n_rows < least - 0.5]
    labels, source, published = zip(*shown, strict=True) if shown else ((), (), ())
    return replace(found, bins=labels, source=source, published=published)


def answered(pair: Sequence[Compared]) -> Table | None:
    """Return what queries of an analyst count in the source and in each candidate."""
    if not pair or not all(one.answers for one in pair):
        return None
    most = max(one.k for one in pair)  # the source is shown beside both
    few = f"fewer than {most:,}"
    rows = [
        (
            answers[0].query,
            few if (answers[0].source or 0) < most else number(answers[0].source),
            *(few if (one.published or 0) < most else f"{one.published:,.0f}" for one in answers),
        )
        for answers in zip(*(one.answers for one in pair), strict=True)
    ]
    heads = {"query": WORDS, "original": FIGURE}
    heads |= {f"{i}: k = {one.k:,}": FIGURE for i, one in enumerate(pair, 1)}
    return Table("What three queries of an analyst would count", heads, tuple(rows))


def of_proof(release: Release | TableReport) -> Table:
    """Return what the database proved of a release."""
    rows = [
        (one.model, one.column or "all", number(one.required), number(one.achieved), one.verdict)
        for one in release.checks.results
    ]
    heads = {"model": WORDS, "column": WORDS, "required": FIGURE, "achieved": FIGURE}
    caption = f"What the database proved of {release.relation}"
    return Table(caption, {**heads, "verdict": WORDS}, tuple(rows))


def of_cells(found: Composition) -> Table:
    """Return what releases disclose together."""
    rows = [
        (
            number(one.release),
            one.result.model,
            one.result.column or "all",
            number(one.result.required),
            number(one.result.achieved),
            number(one.result.classes),
            number(one.result.failing_classes),
            one.result.verdict,
        )
        for one in found.results
    ]
    heads = {"release": WORDS, "model": WORDS, "column": WORDS, "required": FIGURE}
    heads |= {"achieved": FIGURE, "cells": FIGURE, "failing": FIGURE, "verdict": WORDS}
    tables = ", ".join(map(str, (found.table, *found.beside)))
    caption = f"{found.persons:,} persons of {tables}, in cells of the same classes throughout"
    return Table(caption, heads, tuple(rows))


def count(text: str, name: str) -> int:
    """Return a count of a form; raises ConfigError."""
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise ConfigError(f"{name} is a whole number above 0", hint="separate several by spaces")
    return int(text[:9])


def search(
    action: Callable[[Any, Options], object], what: object, request: Options, stages: Stages
) -> object:
    """Run an action on a table or dataset with a request, in a process of its own."""
    return action(what, replace(request, stages=stages))


def tried(
    table: str, request: Options, samples: Sequence[int | None], stages: Stages
) -> Iterator[Comparison]:
    """Compare candidates on larger and larger samples, None for all rows, in a process of its own.

    Of the first sample every result is yielded as it comes, of the others all at once. A sample
    whose rows allow no candidate is left out, unless it is the last.
    """
    for most in samples:
        try:
            for found in comparisons(table, replace(request, stages=stages), most_rows=most):
                is_complete = len(found.results) == len(found.ks)
                if is_complete or most == samples[0]:
                    yield found
        except Unsatisfiable:
            if most == samples[-1]:
                raise
            continue
        if not found.is_sample:
            return


def run(
    action: Callable[..., object], what: object, options: Mapping[str, object], stages: Stages
) -> object:
    """Run an action on a table, relation or dataset, in a process of its own."""
    return action(what, **options, stages=stages)
