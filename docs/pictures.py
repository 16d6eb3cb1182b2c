"""Take the pictures of the studio that its guide shows, on the demo's patients.

    python docs/pictures.py

Needs the extras ``embedded`` and ``studio``, Playwright and a Chromium, and takes some minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

DOCS = Path(__file__).parent
SCREEN = {"width": 1280, "height": 800}
KEPT_BACK = ("kappa", "lambda", "futime", "flc_grp", "mgus")
PATIENCE = 600_000


@contextmanager
def studio() -> Iterator[str]:
    """Yield the address of a studio on the demo's table, in a folder of its own."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # the server of root has an account of its own
        environment = {**os.environ, "DBANON_HOME": home}
        command = [sys.executable, "-m", "dbanon"]
        words = [*command, "studio", "--demo", "--no-browser"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603 - this program
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()
            subprocess.run([*command, "server", "stop"], env=environment, check=True)  # noqa: S603 - this program


def take(page: Page, name: str) -> None:
    """Store the visible part of a page."""
    page.screenshot(path=DOCS / f"studio-{name}.png")


def walk(page: Page) -> None:
    """Go from the tables to a published relation."""
    nav = page.get_by_role("navigation")
    page.get_by_role("link", name="public.patients").click()
    for column in KEPT_BACK:
        page.get_by_label(f"role of {column}", exact=True).select_option("identifier")
    page.get_by_role("button", name="Apply the roles").click()
    page.locator("button:enabled", has_text="Undo").wait_for()
    take(page, "columns")
    page.get_by_role("link", name="age", exact=True).click()
    take(page, "column")
    nav.get_by_role("link", name="Trade-off").click()
    page.get_by_role("button", name="Compare on a sample").click()
    page.get_by_role("button", name="Take k = 5", exact=True).wait_for(timeout=PATIENCE)
    page.get_by_role("button", name="Cancel").wait_for(state="detached", timeout=PATIENCE)
    page.set_viewport_size({**SCREEN, "height": 832})  # with the words below the drawing
    take(page, "curve")
    page.set_viewport_size(SCREEN)
    page.get_by_role("button", name="Take k = 5", exact=True).click()
    page.get_by_role("button", name="Preview this draft").click()
    page.get_by_role("heading", name="Published rows").wait_for(timeout=PATIENCE)
    take(page, "preview")
    nav.get_by_role("link", name="Publish").click()
    page.get_by_role("button", name="Save the policy").click()
    nav.get_by_role("link", name="Publish").click()
    page.get_by_role("button", name="Publish", exact=True).click()
    page.get_by_text("is served as").wait_for(timeout=PATIENCE)
    take(page, "publish")


def main() -> None:
    """Take all pictures."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with studio() as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport=SCREEN, color_scheme="light")
        page.goto(address)
        page.wait_for_url("**/tables")
        walk(page)
        browser.close()


if __name__ == "__main__":
    main()
