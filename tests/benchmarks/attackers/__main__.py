"""How often attacks are right, on naive releases and on ours.

    PYTHONPATH=tests/benchmarks .venv/bin/python -m attackers [--tables adult] [--ks 2,5,10]

Each cell is the rate in percent, after the slash the greatest that the models admit, if there is
one. A bound that even the low end of the interval is above is marked with ``!``; the exit code is 1
then. The truth is known: who is in which class, and who has which value.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np
from measuring import say

from attackers.made import SETTINGS, as_it_is, grouped_again, ours, table_of
from dbanon.anonymization.attacks.pair import Shown, attack_both
from dbanon.anonymization.attacks.registry import attack
from dbanon.domain.errors import DbanonError
from dbanon.domain.outcomes import Stages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attackers.made import Made
    from dbanon.domain.report import Attack

SAMPLES, SEED = 10_000, 1
ONE = {
    "re-identification, prosecutor": "find",
    "re-identification, journalist": "easiest",
    "re-identification, marketer": "link all",
    "linkage by distance": "nearest",
    "homogeneity": "certain",
    "skewness": "guess",
    "background knowledge of 1": "but one",
    "deFinetti": "learn",
    "minimality": "minimal",
}
BOTH = {
    "join": "join",
    "intersection": "guess",
    "intersection to one value": "certain",
    "differencing": "subtract",
}


def cell(one: Attack | None) -> tuple[str, bool]:
    """Return what is printed of an attack, and whether its bound is broken."""
    if one is None:
        return "-", False
    text = f"{100 * one.rate:.1f}"
    if one.expected is None:
        return text, False
    broken = one.low > one.expected + 1e-9
    return f"{text}/{100 * one.expected:.1f}{'!' if broken else ''}", broken


def line(name: str, attacks: Iterable[Attack], titles: dict[str, str], least: str) -> bool:
    """Print the attacks on a release; return whether it kept all bounds."""
    found = {one.name: one for one in attacks}
    cells = [cell(found.get(title)) for title in titles]
    usual = found.get("skewness") or found.get(least)
    without = "-" if usual is None else f"{100 * usual.baseline:.1f}"
    say(f"{name:<44}" + "".join(f"{text:>12}" for text, _ in cells) + f"{without:>10}")
    return not any(broken for _, broken in cells)


def head(titles: dict[str, str]) -> None:
    say(f"{'':<44}" + "".join(f"{title:>12}" for title in titles.values()) + f"{'without':>10}")


def attacked(table: str, made: Made) -> bool:
    found = attack(made.released, made.policy, samples=SAMPLES, seed=SEED, stages=Stages())
    return line(f"{table}, {made.name}", found.attacks, ONE, "skewness")


def attacked_both(table: str, first: Made, second: Made, *, is_judged: bool) -> bool:
    rows = np.arange(first.released.table.n_rows)
    shown = [Shown(one.released, one.policy, rows) for one in (first, second)]
    asked = {"samples": SAMPLES, "seed": SEED, "stages": Stages()}
    found = attack_both(*shown, is_judged=is_judged, **asked)
    return line(f"{table}, {second.name}", found.attacks, BOTH, "intersection")


def one_by_one(tables: list[str], ks: list[int]) -> bool:
    """Print the attacks on one release each."""
    head(ONE)
    kept = True
    for table in tables:
        encoded, policy = table_of(table)
        kept &= attacked(table, as_it_is(encoded, policy))
        for setting in SETTINGS:
            for k in ks:
                try:
                    kept &= attacked(table, ours(encoded, policy, k, setting))
                except DbanonError as error:
                    say(f"{table}, k = {k}, {setting}: {error}")
    return kept


def two_by_two(tables: list[str]) -> bool:
    """Print the attacks on a release with a later one of the same table."""
    head(BOTH)
    kept = True
    for table in tables:
        first = ours(*table_of(table), 5, "l = 3")
        for keeps_atoms in (False, True):
            second = grouped_again(first, k=10, keeps_atoms=keeps_atoms)
            kept &= attacked_both(table, first, second, is_judged=keeps_atoms)
    return kept


def main() -> int:
    """Print all lines; return 1 if a bound was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="adult,patients,wards")
    parser.add_argument("--ks", default="2,5,10")
    given = parser.parse_args()
    tables, ks = given.tables.split(","), [int(k) for k in given.ks.split(",")]
    kept = one_by_one(tables, ks)
    say("")
    kept &= two_by_two(tables)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
