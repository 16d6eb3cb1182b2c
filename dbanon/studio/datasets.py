"""The pages of datasets: tables of the same persons, which are published together."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import tomli_w

from dbanon.actions.plan import Plan, plan_dataset_request
from dbanon.actions.policy import policy_with_approval
from dbanon.actions.publish import publish_dataset_request
from dbanon.actions.releases.ledger import list_releases
from dbanon.actions.releases.report import report_dataset
from dbanon.domain.errors import ConfigError, DbanonError
from dbanon.domain.release import Release
from dbanon.domain.report import DatasetReport
from dbanon.domain.text import command
from dbanon.formats.datasets import Dataset, dataset_of
from dbanon.pages.figures import number, percent
from dbanon.pages.rendering import FIGURE, WORDS, Table
from dbanon.request import Request as Options
from dbanon.studio.pages import PolicyChanged, as_field, form_of, names_of
from dbanon.studio.searches import SearchPages, count, of_cells, of_proof, options_of, run, search

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from dbanon.domain.outcomes import Stages
    from dbanon.domain.policy import Policy
    from dbanon.domain.table import TableName

_FILE = "dataset.toml"


@dataclass(frozen=True, slots=True)
class Member:
    """A table of a dataset, with its stored policy or why it has none, and its relation.

    digest: of the policy and its taxonomies.
    """

    table: TableName
    policy: Policy | None
    problem: str | None
    relation: TableName | None
    digest: str = ""


class DatasetPages(SearchPages):
    """Pages about linked tables."""

    def dataset(self, request: Request) -> Response:
        """Show the tables of a dataset, what publishing them costs, and its releases."""
        dataset = _dataset_of(request)
        served = self._served(dataset)
        if served:
            dataset = dataset_of(served[0].dataset)  # in the order in which it was published
        members = [self._member(name, served) for name in dataset.names]
        past, problem = self.past(dataset.persons) if served else (None, None)
        job = self.running(request)
        result: Any = None if job is None else job.result
        return self.render(
            "dataset.html",
            self.kept(request),
            dataset=dataset,
            given=as_field(dataset.names),
            text=_text(dataset),
            file=_FILE,
            members=members,
            of=" ".join(one.digest for one in members),
            served=served,
            past=past,
            problem=problem,
            of_cells=of_cells,
            job=job,
            sent=options_of(job),
            planned=planned_table(result) if _is_of(result, tuple) else None,
            proofs=[*map(of_proof, result)] if _is_of(result, Release) else (),
            report=result if isinstance(result, DatasetReport) else None,
            of_proof=of_proof,
        )

    def _member(self, name: TableName, served: Sequence[Release]) -> Member:
        relation = next((one.relation for one in served if one.table == name), None)
        try:
            policy, approval = policy_with_approval(name, settings=self.workspace.settings)
        except DbanonError as error:
            return Member(name, None, str(error), relation)
        return Member(name, policy, None, relation, approval.digest or "")

    def _served(self, dataset: Dataset) -> list[Release]:
        """Return the served releases of all tables together, in whatever order these are."""
        persons, tables = str(dataset.persons), set(map(str, dataset.names))
        found = list_releases(settings=self.workspace.settings)
        together = [one for one in found if one.served and one.dataset[:1] == (persons,)]
        return [one for one in together if set(one.dataset) == tables]

    def plan_dataset(self, request: Request) -> Response:
        """Group the persons of a dataset by each k."""
        dataset, form = _dataset_of(request), form_of(request)
        ks = sorted({count(word, "k") for word in names_of(form.get("ks", ""))})
        if not ks:
            raise ConfigError("no value of k is given", hint="separate several by spaces")
        options, given = self._options(form)
        line = "\n".join(f"dbanon plan --dataset {_FILE} --k {k}{given}" for k in ks)
        arguments = (planned, dataset, options, tuple(ks))
        return self.begin(request, "plan the dataset", *arguments, line=line)

    def publish_dataset(self, request: Request) -> Response:
        """Publish the tables of a dataset together."""
        dataset, form = _dataset_of(request), form_of(request)
        options, given = self._options(form)
        k = count(form.get("k", ""), "k")
        roles = tuple(names_of(form.get("roles", "")))
        shown = tuple(form.get("of", "").split())
        if len(shown) != len(dataset.names):
            raise PolicyChanged
        options = replace(options, k=k, grants=roles, shown=shown)
        words = "".join(f" {command('--grant', role)}" for role in roles)
        line = f"dbanon publish --dataset {_FILE} --k {k}{given}{words}"
        arguments = (search, publish_dataset_request, dataset, options)
        return self.begin(request, "publish the dataset and prove", *arguments, line=line)

    def report_dataset(self, request: Request) -> Response:
        """Report a dataset to its steward, or to the public."""
        dataset, public = _dataset_of(request), bool(form_of(request).get("public"))
        given = {"public": public, "settings": self.workspace.settings}
        line = f"dbanon report --dataset {_FILE}" + (" --public" if public else "")
        return self.begin(request, "report", run, report_dataset, dataset, given, line=line)

    def _options(self, form: dict[str, str]) -> tuple[Options, str]:
        """Return the options of both forms, and as text."""
        least = form.get("l", "").strip()
        options = Options(settings=self.workspace.settings)
        if not least:
            return options, ""
        return replace(options, l=count(least, "l")), f" --l {least}"


def _dataset_of(request: Request) -> Dataset:
    """Return the dataset of a form or an address, or that of chosen tables; raises ConfigError."""
    query = request.query_params
    given = (form_of(request) if request.method == "POST" else query).get("dataset")
    if given is None:
        return dataset_of(dict.fromkeys([query.get("persons", ""), *query.getlist("with")]))
    try:
        names = json.loads(given)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError("the address names no tables", hint="choose them on the page of tables")
    return dataset_of(names)


def _text(dataset: Dataset) -> str:
    """Return a dataset as a file."""
    tables = [str(name) for name in dataset.tables]
    return tomli_w.dumps({"persons": str(dataset.persons), "tables": tables})


def _is_of(result: object, kind: type) -> bool:
    return isinstance(result, list) and bool(result) and isinstance(result[0], kind)


def planned(
    dataset: Dataset, request: Options, ks: Sequence[int], stages: Stages
) -> Iterator[list[tuple[int, Plan]]]:
    """Plan a dataset with each k, in a process of its own."""
    found: list[tuple[int, Plan]] = []
    for k in ks:
        plans = plan_dataset_request(dataset, replace(request, k=k, stages=stages))
        found = [*found, *((one.policy.k, one) for one in plans)]
        yield found


def planned_table(found: Sequence[tuple[int, Plan]]) -> Table:
    """Return the cost of each table with each k."""
    counts = attrgetter("n_classes", "smallest_class", "n_suppressed")
    rows = [
        (number(k), str(one.policy.table), percent(one.loss.ncp), *map(number, counts(one.loss)))
        for k, one in found
    ]
    heads = {"k": FIGURE, "table": WORDS, "lost (NCP)": FIGURE, "classes": FIGURE}
    heads |= {"rows of the smallest class": FIGURE, "suppressed rows": FIGURE}
    return Table("What each table loses", heads, tuple(rows))
