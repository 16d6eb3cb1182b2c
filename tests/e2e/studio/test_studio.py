"""A steward in the studio: from a table to a published relation, in a real browser."""

import re
import signal

import pytest
from browsers import hindrances
from playwright.sync_api import expect
from tables import define_patients, make_patients

import dbanon

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 800, "height": 900}
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"
REFUSED = "403 (Forbidden)"


def go(page, name):
    """Open a page of the table by its tab."""
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()


def commands(page):
    """Return the command lines of the drawer."""
    return page.locator("#commands").text_content().splitlines()


@pytest.mark.slow
def test_a_steward_publishes_with_the_mouse_and_the_command_line_publishes_the_same(
    copied, database, studio, tab, tmp_path
):
    make_patients(database)
    reader = database.role("studio_analyst")
    page = tab(studio(database.dsn), viewport=WIDE)
    page.get_by_role("link", name="public.patients").click()
    page.get_by_label("role of note").select_option("identifier")
    page.get_by_label("role of disease").select_option("sensitive")
    page.get_by_role("button", name="Apply the roles").click()
    expect(page.get_by_label("role of disease")).to_have_value("sensitive")
    go(page, "Trade-off")
    page.get_by_label("Values of k").fill("2 5")
    page.get_by_label("l", exact=True).fill("2")
    page.get_by_role("button", name="Compare on all rows").click()
    expect(page.get_by_role("button", name="Take k = 5")).to_be_visible(timeout=180_000)
    assert hindrances(page) == {}
    page.get_by_role("button", name="Take k = 5").click()
    page.get_by_role("button", name="Preview this draft").click()
    expect(page.get_by_role("heading", name="Published rows")).to_be_visible(timeout=180_000)
    assert hindrances(page) == {}
    go(page, "Publish")
    page.get_by_role("button", name="Save the policy").click()
    go(page, "Publish")
    page.get_by_label("Roles that may read it").fill(reader)
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("is served as anon.patients")).to_be_visible(timeout=180_000)
    expect(page.locator("td", has_text="passed").first).to_be_visible()
    done = commands(page)
    policy = page.locator("#toml").text_content()
    assert "dbanon policy set public.patients --file patients.toml" in done
    assert f"dbanon publish public.patients --grant {reader}" in done
    go(page, "Releases")
    page.get_by_label("Minute, hour, day, month, weekday").fill("15 3 * * *")
    page.get_by_role("button", name="Set the schedule").click()
    expect(page.get_by_text("Scheduled:")).to_be_visible()
    assert hindrances(page) == {}
    assert (page.complaints, page.foreign) == ([], [])
    (release,) = dbanon.list_releases(settings=database.settings)
    assert (reader,) == tuple(release.overrides["grants"])
    with database.connect_as(reader) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM anon.patients").fetchone()
    assert rows == release.loss.n_rows - release.loss.n_suppressed
    (tmp_path / "patients.toml").write_text(policy, encoding="utf-8")
    other = copied(make_patients)
    dbanon.set_policy("public.patients", tmp_path / "patients.toml", settings=other.settings)
    again = dbanon.publish("public.patients", settings=other.settings)
    assert again.loss == release.loss
    query = "SELECT md5(string_agg(p::text, '|' ORDER BY p::text)) FROM anon.patients AS p"
    assert database.execute(query) == other.execute(query)


@pytest.mark.slow
def test_a_steward_publishes_by_keyboard_on_a_narrow_screen_in_the_dark(copied, studio, tab):
    database = copied(define_patients)
    page = tab(studio(database.dsn), viewport=NARROW, color_scheme="dark")

    def press(name, kind="button"):
        page.get_by_role(kind, name=name, exact=True).first.focus()
        page.keyboard.press("Enter")

    press("public.patients", "link")
    expect(page.get_by_role("heading", name="Columns of")).to_be_visible()
    assert page.evaluate(TOO_WIDE) <= 0
    assert hindrances(page) == {}
    page.get_by_label("role of note").focus()
    page.keyboard.type("identifier")
    press("Apply the roles")
    press("Undo")
    expect(page.get_by_role("button", name="Redo")).to_be_enabled()
    press("Publish", "link")
    expect(page.get_by_role("heading", name="Publish public.patients")).to_be_visible()
    assert page.evaluate(TOO_WIDE) <= 0
    press("Publish")
    expect(page.get_by_text("is served as anon.patients")).to_be_visible(timeout=180_000)
    press("Report for the public")
    expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible(timeout=180_000)
    assert page.evaluate(TOO_WIDE) <= 0
    assert page.complaints == []


@pytest.mark.slow
def test_a_search_is_cancelled_and_another_browser_is_refused(copied, studio, tab, browser):
    database = copied(define_patients)
    address = studio(database.dsn)
    page = tab(address, viewport=WIDE)
    page.get_by_role("link", name="public.patients").click()
    go(page, "Trade-off")
    page.get_by_role("button", name="Compare on all rows").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("nothing was changed")).to_be_visible()
    page.reload()
    expect(page.get_by_text("nothing was changed")).to_be_visible()
    second = page.context.new_page()
    second.goto(page.url)
    expect(second.get_by_role("heading", name="Loss against risk")).to_be_visible()
    stranger = browser.new_context()
    for place in (address, page.url):
        refused = stranger.new_page()
        assert 403 == refused.goto(place).status
        assert "not admitted" in refused.locator("body").inner_text()
    stranger.close()
    studio.process.send_signal(signal.SIGINT)
    assert 0 == studio.process.wait(30)
    failed = []
    second.on("requestfailed", lambda one: failed.append(one.url))
    with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
        second.reload()


@pytest.mark.slow
def test_a_refused_publication_names_what_to_do(copied, studio, tab):
    database = copied(define_patients)
    page = tab(studio(database.dsn), viewport=WIDE)
    page.get_by_role("link", name="public.patients").click()
    go(page, "Policy")
    text = page.get_by_label("The draft as TOML")
    text.fill(re.sub(r"(?m)^k = \d+", "k = 5000", text.input_value()))
    page.get_by_role("button", name="Apply to the draft").click()
    page.get_by_role("button", name="Save the policy").click()
    go(page, "Publish")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Not done")).to_be_visible(timeout=180_000)
    assert [] == dbanon.list_releases(settings=database.settings)
