"""A studio in a process of its own, and a browser with a network to it."""

import os
import subprocess
import sys

import pytest
from browsers import browser

__all__ = ["browser", "studio", "tab"]


@pytest.fixture
def studio(monkeypatch):
    """Return what starts ``dbanon studio`` on a database, and its address."""
    started = []

    def studio(dsn, *words):
        command = [sys.executable, "-m", "dbanon", "studio", "--no-browser", *words]
        environment = os.environ if dsn is None else {**os.environ, "DBANON_DSN": dsn}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        started.append(process)
        address = process.stdout.readline().strip()
        assert "://127.0.0.1:" in address, process.stderr.read()
        studio.process = process
        return address

    yield studio
    for process in started:
        process.terminate()
        process.wait(20)
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def tab(browser):
    """Return what opens an address in a new browser, with its complaints and foreign requests."""
    pytest.importorskip("playwright.sync_api").expect.set_options(timeout=60_000)  # others run, too
    contexts = []

    def tab(address, *, path="**/tables", **options):
        context = browser.new_context(**options)
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.foreign = [], []
        origin = "/".join(address.split("/")[:3])
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on(
            "request",
            lambda one: one.url.startswith(f"{origin}/") or page.foreign.append(one.url),
        )
        page.goto(address)
        page.wait_for_url(path or address)
        return page

    yield tab
    for context in contexts:
        context.close()
