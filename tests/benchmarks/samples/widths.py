"""The search on tables of 4 to 24 quasi-identifiers, and on a wide one of categories.

The tables are made up (see samples/wide.py). CPU seconds are those of the search, of all threads,
kernels ready and the table encoded before the clock starts; the exponent is that of the number of
columns in a power that is fitted to them. All rows of the table of categories are distinct. Every
publication is scored twice and held against its raw values (see samples/published.py).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from measuring import say

from samples.published import publish
from samples.wide import encoded_wide

COLUMNS = (4, 8, 16, 24)
FEW, K = 2_000, 5
EXPONENT = 1.3
CATEGORIES, CATEGORICAL_ROWS = 15, 10_000
SIZES = (5, 10)
LESS = 5.0  # percent of the loss of k-member
PEER = {"algorithm": "k-member", "params": {"cost": "ncp"}}


def judged(value: float, bar: float) -> str:
    return "met" if value <= bar else "MISSED"


def widths(rows: int, columns: list[int], folder: Path) -> bool:
    """Search tables of so many columns; whether CPU seconds grow as slowly as they should."""
    say(f"\n{rows:,} rows, numbers and categories, k = {K}")
    say(f"{'columns':>7} {'NCP %':>9} {'CPU s':>8} {'wall s':>8}  start")
    seconds = []
    for d in columns:
        found = publish(encoded_wide(rows, d, folder), k=K)
        seconds.append(found.cpu)
        shown = f"{100 * found.ncp:>9.4f} {found.cpu:>8.2f} {found.wall:>8.2f}"
        say(f"{d:>7} {shown}  {found.start}")
    exponent = float(np.polyfit(np.log(columns), np.log(seconds), 1)[0])
    say(f"CPU seconds ~ columns ** {exponent:.2f}; bar {EXPONENT}: {judged(exponent, EXPONENT)}")
    return exponent <= EXPONENT


def categories(rows: int, folder: Path) -> bool:
    """Search a wide table of categories; whether it loses enough less than k-member."""
    table = encoded_wide(rows, CATEGORIES, folder, numbers=False)
    distinct = len(set(zip(*(column.to_pylist() for column in table.source.columns), strict=True)))
    say(f"\n{rows:,} rows of {CATEGORIES} categories, {distinct:,} of them distinct")
    say(f"{'algorithm':<16} {'k':>3} {'NCP %':>9} {'CPU s':>8} {'less %':>7}  start")
    least = np.inf
    for k in SIZES:
        peer = publish(table, k=k, **PEER)
        say(f"{'k-member':<16} {k:>3} {100 * peer.ncp:>9.4f} {peer.cpu:>8.2f}")
        for effort in ("fast", "balanced"):
            found = publish(table, k=k, params={"effort": effort})
            less = 100 * (1 - found.ncp / peer.ncp)
            shown = f"{100 * found.ncp:>9.4f} {found.cpu:>8.2f} {less:>7.2f}  {found.start}"
            say(f"{'auto ' + effort:<16} {k:>3} {shown}")
        least = min(least, less)
    say(f"balanced loses {least:.2f} % less at least; bar {LESS}: {judged(LESS, least)}")
    return least >= LESS


def warm_up(folder: Path) -> None:
    """Load the machine code of what is measured, or compile it."""
    for numbers in (True, False):
        few = encoded_wide(FEW, 4, folder, numbers=numbers)
        for changes in ({}, PEER):
            publish(few, k=K, **changes)


def compare_widths(rows: int) -> bool:
    """Search tables of so many rows, and the one of categories; whether all bars are met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm_up(folder)
        met = [widths(rows, [*COLUMNS], folder), categories(CATEGORICAL_ROWS, folder)]
    return all(met)
