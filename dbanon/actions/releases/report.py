"""What a published relation risks and what it is worth, for whoever answers for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from dbanon.actions.releases.judging import SAMPLES, THRESHOLD, Bench, judged
from dbanon.actions.releases.seeing import see, served
from dbanon.domain import extras
from dbanon.domain.checks import CheckReport
from dbanon.domain.errors import ConfigError
from dbanon.domain.policy import K_ANONYMITY
from dbanon.domain.progress import Stages
from dbanon.domain.report import Report
from dbanon.domain.report.losses import told_count, told_loss
from dbanon.domain.text import command
from dbanon.settings import Settings

if TYPE_CHECKING:
    from dbanon.actions.releases.check import Checked
    from dbanon.actions.releases.seeing import Seen
    from dbanon.anonymization.released.cells import Released
    from dbanon.domain.release import Release
    from dbanon.domain.report.losses import Count, Loss
    from dbanon.domain.table import TableName


@dataclass(frozen=True, slots=True)
class Asked:
    """How much is looked at: rows of the source, seconds, and the risk that counts as high."""

    samples: int = SAMPLES
    time_limit: float | None = None
    threshold: float = THRESHOLD
    population: int | None = None
    seed: int = 0


def report(
    relation: str | TableName,
    *,
    samples: int = SAMPLES,
    time_limit: float | None = None,
    threshold: float = THRESHOLD,
    population: int | None = None,
    settings: Settings | None = None,
    stages: Stages | None = None,
) -> Report:
    """Return what a served relation risks and what it is worth, in figures that name nobody.

    Its checks are proved again in the database, and what readers see is held against the source as
    it is now. samples: the most rows of the source of which each is looked at; time_limit: seconds
    after which no other part is begun; threshold: the risk from which a record counts as at risk;
    population: how many persons the persons of the table are a part of, where the policy names no
    table of them. Needs the rights of the role that publishes.

    Raises ConfigError for what serves no release, and for a population of fewer persons than the
    table has; DriftError when its source is gone or no longer has what the release was made of,
    NotPermitted, TableNotFound. A relation that does not hold what it promises has a report,
    whose ``checks`` say so.
    """
    from dbanon.actions.releases.check import check_one

    asked = Asked(samples, time_limit, threshold, population)
    _require_sensible(asked)
    extras.require("sklearn", what="a report", extra="report")
    stages, settings = stages or Stages(), settings or Settings.load()
    begun = monotonic()
    release = served(relation, settings)
    _require_alone(release)
    with stages("prove"):
        checked = check_one(release.relation, settings=settings)
    _require_rows(checked)
    seen = see(release, settings, stages, persons=asked.population)
    _require_part(asked.population, seen.released)
    return _judged(release, checked, seen, asked, stages=stages, begun=begun)


def _require_sensible(asked: Asked) -> None:
    if not 0.0 < asked.threshold < 1.0:
        msg = f"a threshold is a risk between 0 and 1, and not {asked.threshold:g}"
        raise ConfigError(msg, hint="--threshold 0.2: one of five")
    if asked.population is not None and asked.population < 1:
        raise ConfigError("a population has one person at least", hint="--population-size 100000")
    if asked.samples < 1:
        raise ConfigError("at least one row is looked at", hint="--samples 10000")


def _require_part(population: int | None, released: Released) -> None:
    """Raise ConfigError where a population has fewer persons than the table, a part of it."""
    owners = released.persons
    known = released.table.n_rows if owners is None else int(owners.max(initial=-1)) + 1
    if population is not None and population < known:
        raise ConfigError(
            f"a population of {population:,} has fewer persons than the table",
            hint="--population-size 100000: all of whom those of the table are a part",
        )


def _require_alone(release: Release) -> None:
    if release.dataset:
        others = " and ".join(table for table in release.dataset if table != str(release.table))
        raise ConfigError(
            f"{release.relation} was published together with {others}, in which its persons have"
            " rows, too: a report of it alone would leave out what these tell of them",
            hint=command("dbanon check", release.relation),
        )


def _require_rows(checked: Checked) -> None:
    """Raise what a check raises of a relation that has no row to report of."""
    if checked.error is not None and not any(result.n_rows for result in checked.results):
        raise checked.error


def _judged(
    release: Release,
    checked: Checked,
    seen: Seen,
    asked: Asked,
    *,
    stages: Stages,
    begun: float,
) -> Report:
    """Return the report; parts for which there is no time are left out, and named."""
    until = None if asked.time_limit is None else begun + asked.time_limit
    looked = (asked.samples, asked.seed, until, seen.is_told)
    bench = Bench(seen.released, release.policy, stages, *looked)
    loss, hidden = _loss(release, checked, bench)
    found = judged(
        bench,
        seen.everybody,
        threshold=asked.threshold,
        sizes=seen.sizes,
        achieved=_achieved(release, checked),
    )
    return Report(
        relation=release.relation,
        table=release.table,
        release=release.id,
        created_at=release.created_at,
        policy=bench.recoded,
        checks=_checks(release, checked),
        loss=loss,
        hidden=hidden,
        risk=found.risk,
        utility=found.utility,
        columns=seen.columns,
        taxonomies=dict(release.taxonomies),
        readers=seen.readers,
        statements=seen.statements,
        warnings=seen.warnings,
        sampled=found.sampled,
        left_out=found.left_out,
    )


def _loss(release: Release, checked: Checked, bench: Bench) -> tuple[Loss, Count]:
    """Return what was lost, and how many rows are hidden by now: none where nobody counts them."""
    from dbanon.anonymization.utility.losses import on_shown_scale

    least = bench.least
    lost = on_shown_scale(release.loss, bench.released, least=least)
    published = release.loss.n_rows - release.loss.n_suppressed
    found = (one.n_rows for one in checked.report.results if one.model == K_ANONYMITY)
    shown = next(found, published)
    return told_loss(lost, least=least, shown=shown), told_count(abs(published - shown), least)


def _checks(release: Release, checked: Checked) -> CheckReport:
    """Return the checks of now, and of then those of persons, which only the publication proved."""
    again = {(one.model, one.column) for one in checked.results}
    of_persons = (
        replace(one, column=f"{one.column}, when published")
        for one in release.checks.results
        if one.column is not None and (one.model, one.column) not in again
    )
    return CheckReport(release.relation, (*checked.results, *of_persons))


def _achieved(release: Release, checked: Checked) -> float | None:
    """Return the fewest rows of a class, or persons, who were counted when it was published."""
    results = (*release.checks.results, *checked.results)
    found = [result.achieved for result in results if result.model == K_ANONYMITY]
    return min((least for least in found if least is not None), default=None)
