"""``dbanon plan --compare``: what each of several algorithms would cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from dbanon.cli.notation import percent
from dbanon.cli.pages import comparison as pages
from dbanon.cli.terminal import console
from dbanon.cli.terminal import plot as drawing
from dbanon.request import LARGEST_COUNT

if TYPE_CHECKING:
    from pathlib import Path

    from dbanon.actions.compare import Compared, Comparison
    from dbanon.request import Request

_USUAL_KS = (2, 5, 10, 25, 50, 100)
_HEADERS = ("IL", "C_DM", "C_AVG/k", "CM", "suppressed", "seconds")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to compare on a table, none for what is usual, and the files to show it in."""

    table: str
    names: tuple[str, ...]
    ks: tuple[int, ...]
    plot: Path | None
    page: Path | None

    @property
    def steps(self) -> int:
        """How many stages the comparison has."""
        from dbanon.actions.compare import USUAL

        return 2 + 2 * len(self.names or USUAL) * max(len(self.ks), 1)

    def run(self, request: Request) -> Comparison:
        """Compare, on one reading of the table."""
        from dbanon.actions.compare import compare_request

        return compare_request(self.table, replace(request, algorithms=self.names, ks=self.ks))

    def show(self, found: Comparison, *, json: bool) -> None:
        """Draw the comparison, print it, and write its page."""
        if self.plot:
            drawing.draw_comparison(found, self.plot)
        if self.page:
            pages.write(found, self.page)
        if json:
            console.document(found)
        else:
            _show(found)
        for path in filter(None, (self.plot, self.page)):
            console.err().print(f"{path} written")


def wanted(
    table: str,
    algorithms: str | None,
    *,
    ks: str | None,
    plot: Path | None,
    page: Path | None,
) -> Wanted:
    """Read what is to be compared; refuses a file that nothing could be drawn in."""
    names = tuple(name for part in (algorithms or "").split(",") if (name := part.strip()))
    tried = _numbers(ks) or (_USUAL_KS if plot or page else ())
    if plot:
        drawing.require(plot, example="loss.svg")
    return Wanted(table, names, tried, plot, page)


def _numbers(text: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    numbers = {int(part) for part in parts if part.isdecimal()}
    if len(numbers) < len(set(parts)) or not all(0 < k <= LARGEST_COUNT for k in numbers):
        raise typer.BadParameter(
            f"{text!r} is no list of numbers such as 2,5,10", param_hint="--ks"
        )
    return tuple(sorted(numbers))


def _show(found: Comparison) -> None:
    ks = ", ".join(map(str, found.ks))
    penalties = ("weighted NCP", "NCP") if found.is_weighted else ("NCP",)
    console.table(
        ("algorithm", "k", *penalties, *_HEADERS),
        [_row(result) for result in found.results if result.loss is not None],
        title=f"{found.table}: {found.n_rows:,} rows, k = {ks}{found.diversity}",
    )
    for result in found.results:
        if result.reason is not None:
            console.say(f"{result.algorithm}, k = {result.k}: {result.reason}")


def _row(result: Compared) -> tuple[object, ...]:
    loss = result.loss
    if loss is None or result.seconds is None:  # a refusal has no row
        return ()
    penalties = [loss.ncp] if loss.weighted_ncp is None else [loss.weighted_ncp, loss.ncp]
    return (
        result.algorithm,
        result.k,
        *map(percent, penalties),
        f"{loss.metrics['il']:,.0f}",
        f"{loss.metrics['discernibility']:,.0f}",
        f"{loss.metrics['c-avg-normalized']:.2f}",
        None if "cm" not in loss.metrics else f"{loss.metrics['cm']:.3f}",
        loss.n_suppressed,
        f"{result.seconds:.2f}",
    )
