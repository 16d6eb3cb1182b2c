"""Measure how long a steward waits in the studio for the pages of a long and wide table.

    python tests/benchmarks/studio.py                    # 1,000,000 rows of 53 columns
    python tests/benchmarks/studio.py --rows 100000

In Chromium, from a click until what was asked for can be seen. The paint is the first of a page
that has contents, counted from the request. Each page is opened once before, as the list of tables
and the description of a table are kept, and then five times; the median counts.
"""

from __future__ import annotations

import argparse
import io
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import DBANON, connected, measure, own_server, say
from psycopg import sql
from samples import wide

sys.path.insert(0, str(Path(__file__).parents[1]))

from browsers import FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

NAME = "survey"
TIMES = 5
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
PATIENCE = 300_000.0  # milliseconds
# Seconds in which it must be done.
FIRST_PAINT, ROLE, CURVE = 1.0, 0.3, 5.0


def prepare(rows: int, columns: int) -> None:
    """Write a table of rows with a key, and quasi-identifiers for the other columns."""
    from pyarrow import csv

    drawn = wide.make(rows, columns - 1)
    kinds = {name: "int" if name.startswith("number") else "text" for name in drawn.column_names}
    names = sql.SQL(", ").join(map(sql.Identifier, kinds))
    declared = [sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(k)) for n, k in kinds.items()]
    table = sql.Identifier("public", NAME)
    create = sql.SQL("CREATE TABLE {} (id bigserial PRIMARY KEY, {})")
    copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(table, names)
    with connected() as connection:
        connection.execute(create.format(table, sql.SQL(", ").join(declared)))
        with connection.cursor().copy(copy) as into:
            for batch in drawn.to_batches(50_000):
                buffer = io.BytesIO()
                csv.write_csv(batch, buffer, csv.WriteOptions(include_header=False))
                into.write(buffer.getvalue())
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(table))


@contextmanager
def studio() -> Iterator[str]:
    """Serve a studio, and yield its address."""
    command = [*DBANON, "studio", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@contextmanager
def opened(address: str) -> Iterator[Page]:
    """Open the studio in a browser of its own."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("there is no chromium here: apt-get install chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.wait_for_url("**/tables")
        yield page
        browser.close()


def seconds(act: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def report(what: str, first: float, found: list[float], most: float) -> None:
    """Print the first time, the median of the others, and whether that is short enough."""
    middle = statistics.median(found)
    verdict = "met" if middle <= most else "MISSED"
    say(f"{what:<44} {first:>8.2f} {middle:>8.2f}   <= {most:g} s {verdict}")


def paints(page: Page, what: str, path: str) -> None:
    """Report the first paint of a page."""
    found = []
    for _ in range(1 + TIMES):
        page.goto(path)
        page.wait_for_function(f"({PAINT.replace('.startTime / 1000', '')}) !== undefined")
        found.append(page.evaluate(PAINT))
    report(what, found[0], found[1:], FIRST_PAINT)


def describe(page: Page) -> None:
    """Report how long it takes until the columns of a table are described for the first time."""

    def described() -> None:
        page.get_by_role("link", name=f"public.{NAME}").click()
        page.get_by_label(f"role of {wide.name_of(0, numbers=True)}").wait_for()

    taken = seconds(described)
    say(f"{'its columns are described, while it says so':<44} {taken:>8.2f} {taken:>8.2f}")


def choose(page: Page, name: str, role: str) -> float:
    """Give a column a role; return how long it takes until the page shows it."""
    page.get_by_label(f"role of {name}").select_option(role)

    def apply() -> None:
        page.get_by_role("button", name="Apply the roles").click()
        page.wait_for_function(
            "([name, role]) => document.querySelector(`select[aria-label='role of ${name}']`)"
            ".querySelector('option[selected]').value === role",
            arg=[name, role],
        )

    return seconds(apply)


def roles(page: Page) -> None:
    """Report how long a change of one role takes."""
    names = [wide.name_of(j, numbers=True) for j in range(1 + TIMES)]
    found = [choose(page, name, "insensitive") for name in names]
    report("a role is changed", found[0], found[1:], ROLE)


def curve(page: Page) -> None:
    """Report how long it takes until the first points of a curve can be taken."""

    def first_point() -> None:
        page.get_by_role("button", name="Compare on a sample").click()
        page.locator("button[id^=take-]").first.wait_for()

    choose(page, wide.name_of(1, numbers=True), "sensitive")  # as l is asked for
    page.get_by_role("navigation").get_by_role("link", name="Trade-off", exact=True).click()
    taken = seconds(first_point)
    report("the first points of a curve on a sample", taken, [taken], CURVE)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=53)
    options = parser.parse_args()
    with own_server():
        measure("init")
        prepare(options.rows, options.columns)
        with studio() as address, opened(address) as page:
            say(f"{options.rows:,} rows of {options.columns} columns")
            say(f"{'seconds':<44} {'first':>8} {'median':>8}   bar")
            paints(page, "first paint of the list of tables", page.url)
            describe(page)
            paints(page, f"first paint of {options.columns} columns", page.url)
            roles(page)
            curve(page)


if __name__ == "__main__":
    main()
