"""Chromium without a window, for what people read in a browser; skipped where there is none."""

import shutil

import pytest

# Root has no sandbox; nothing is looked up that no page asked for.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser():
    """Return Chromium without a window, if there is one.

    Of a file, as its event loop would be in the way of others.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


class Shown:
    """A page in a browser without a network, with all that it asked for and complained of."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(offline=True, **options)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.requests, self.failures, self.complaints = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda one: self.failures.append((one.url, one.failure)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(path.as_uri())


@pytest.fixture
def show(browser, tmp_path):
    """Return what shows a page, given as text, in the browser."""
    shown = []

    def show(text, **options):
        path = tmp_path / f"page{len(shown)}.html"
        path.write_text(text, encoding="utf-8")
        shown.append(Shown(browser, path, **options))
        return shown[-1]

    yield show
    for one in shown:
        one.context.close()


class Mouse:
    """Hands at a mouse, who need keys for text alone."""

    def __init__(self, page):
        self.page = page

    def press(self, one):
        """Press a button or a link."""
        one.click()

    def enter(self, one, text):
        """Replace the text of a field."""
        one.click(click_count=3)
        self.page.keyboard.type(text)

    def choose(self, one, text):
        """Choose from a list."""
        one.select_option(text)

    check = press


class Keyboard:
    """Hands at a keyboard alone: what Tab does not reach is not there for them."""

    MOST = 400

    def __init__(self, page):
        self.page = page

    def _reach(self, one, *keys):
        one.wait_for()
        for _ in range(self.MOST):
            if one.evaluate("one => one === document.activeElement"):
                break
            self.page.keyboard.press("Tab")
        else:
            raise AssertionError(f"Tab does not reach {one}")
        for key in keys:
            self.page.keyboard.press(key)

    def press(self, one):
        """Press a button or a link."""
        self._reach(one, "Enter")

    def enter(self, one, text):
        """Replace the text of a field."""
        self._reach(one, "Control+a")
        self.page.keyboard.type(text)

    def choose(self, one, text):
        """Choose from a list."""
        self._reach(one)
        self.page.keyboard.type(text)

    def check(self, one):
        """Check a box."""
        self._reach(one, "Space")


SERIOUS = {"serious", "critical"}


def hindrances(page):
    """Return what axe-core finds serious for people who see, hear or move otherwise."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not there")
    for closed in page.locator("details").all():
        closed.evaluate("one => one.open = true")
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 20
    return {
        one["id"]: [node["html"][:200] for node in one["nodes"][:3]]
        for one in found["violations"]
        if one["impact"] in SERIOUS
    }
