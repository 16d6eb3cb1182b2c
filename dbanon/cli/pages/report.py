"""The page of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbanon.cli import files
from dbanon.cli.pages import risk, rules, summary, utility
from dbanon.cli.pages.rendering import rendered
from dbanon.cli.terminal.report import anatomy, asked
from dbanon.domain.report import BEYOND
from dbanon.domain.wording import alike_in_words

if TYPE_CHECKING:
    from pathlib import Path

    from dbanon.domain.assignment import LossReport
    from dbanon.domain.report import Report, Utility

_MOST_BINS, _MOST_SETS = 12, 10  # of values and columns, before the others are folded


def write(report: Report, path: Path) -> None:
    """Write the page of a report; the same report gives the same file."""
    files.write(render(report).encode(), path, files.PAGE)


def render(report: Report) -> str:
    """Return the page of a report as text."""
    found = report.risk
    group, _ = alike_in_words(report.policy)
    return rendered(
        "report.html",
        report=report,
        ruling=summary.ruling(report),
        models=summary.of_models(report),
        facts=summary.facts(report),
        anatomy=anatomy(report.policy),
        risks=summary.of_risk(report),
        beyond=summary.beyond(found),
        losses=summary.of_loss(report),
        records=risk.of_records(found.reidentification),
        sizes=risk.of_sizes(found.sizes),
        beliefs=risk.of_beliefs(found.disclosures, group=group),
        changes=risk.of_changes(found.disclosures, group=group),
        populations=risk.of_populations(found.uniqueness),
        sets=risk.of_sets(found.unique_sets).parts(_MOST_SETS),
        attacks=risk.of_attacks(found.attacks),
        methods=list(dict.fromkeys((one.name, one.words) for one in found.attacks)),
        labels=utility.of_labels(report.label_loss),
        **({} if report.loss is None else _of_loss(report.loss)),
        **({} if report.utility is None else _of_utility(report.utility)),
        columns=rules.of_columns(report),
        asked=[("every class meets", asked(spec)) for spec in report.policy.models],
        choices=rules.choices(report.policy),
    )


def _of_loss(loss: LossReport) -> dict[str, object]:
    return {"lost": utility.of_loss(loss), "metrics": utility.of_metrics(loss)}


def _of_utility(found: Utility) -> dict[str, object]:
    names = (name for one in found.distributions for name in one.bins)
    return {
        "distributions": [
            utility.of_distribution(one).parts(_MOST_BINS) for one in found.distributions
        ],
        "opened": any(name.endswith(BEYOND) for name in names),
        "associations": [
            utility.of_association(one).parts(_MOST_SETS) for one in found.associations
        ],
        "queries": utility.of_queries(found.queries),
        "predictions": utility.of_predictions(found.classifications),
    }
