"""``dbanon plan --compare``: what each of several algorithms would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from dbanon.cli import options
from dbanon.cli.terminal import console
from dbanon.cli.terminal.interrupts import interruptible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dbanon.actions.compare import Compared, Comparison

_USUAL_KS = (2, 5, 10, 25, 50, 100)
_HEADERS = ("IL", "C_DM", "C_AVG/k", "CM", "suppressed", "seconds")


def compare(given: Mapping[str, Any]) -> None:
    """Run the comparison that the arguments of ``dbanon plan`` ask for, and show it."""
    from dbanon.actions.compare import USUAL
    from dbanon.actions.compare import compare as action

    names = _names(given)
    ks = _numbers(given["ks"]) or (_USUAL_KS if given["plot"] else ())
    if given["plot"]:
        from dbanon.cli.terminal import plot

        plot.require(given["plot"])
    steps = 2 + 2 * len(names or USUAL) * max(len(ks), 1)
    with (
        console.watched(timings=given["timings"], steps=steps) as stages,
        interruptible(stages, given["on_interrupt"]),
    ):
        found = action(
            given["table"],
            algorithms=names,
            ks=ks,
            settings=options.settings(given["dsn"], owner=given["owner"]),
            stages=stages,
            **options.publication(given),
        )
    if given["plot"]:
        plot.draw(found, given["plot"])
    if given["json"]:
        console.document(found)
    else:
        _show(found)
    if given["plot"]:
        console.err().print(f"{given['plot']} written")


def _names(given: Mapping[str, Any]) -> list[str]:
    if given["algorithm"]:
        raise typer.BadParameter("name them with --algorithms A,B", param_hint="--algorithm")
    if given["print_sql"]:
        raise typer.BadParameter("a comparison has no statements", param_hint="--print-sql")
    return [name for part in (given["algorithms"] or "").split(",") if (name := part.strip())]


def _numbers(text: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    numbers = {int(part) for part in parts if part.isdecimal()}
    if len(numbers) < len(set(parts)) or not all(0 < k <= options.LARGEST_COUNT for k in numbers):
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
        *(f"{100 * penalty:.2f}%" for penalty in penalties),
        f"{loss.metrics['il']:,.0f}",
        f"{loss.metrics['discernibility']:,.0f}",
        f"{loss.metrics['c-avg-normalized']:.2f}",
        None if "cm" not in loss.metrics else f"{loss.metrics['cm']:.3f}",
        loss.n_suppressed,
        f"{result.seconds:.2f}",
    )
