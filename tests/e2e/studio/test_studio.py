"""A steward in the studio: from a table to a published relation, in a real browser."""

import re
import signal
import socket
from time import monotonic
from urllib.parse import urlsplit

import psycopg
import pytest
from browsers import Keyboard, Mouse, hindrances
from playwright.sync_api import expect
from servers import scratch_folder
from studios import served
from tables import define_patients, make_patients, publish_patients

import dbanon
from dbanon.db.releases.immutability import shown_content
from dbanon.server import EmbeddedServer
from dbanon.studio.workspace import Workspace

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 800, "height": 900}
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"


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
    page.get_by_role("button", name="Report for the public").click()
    expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible(timeout=180_000)
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
    # The numbers of classes are drawn at random.
    assert shown_content(release.content) == shown_content(again.content)


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
    place = urlsplit(address)
    idle = [socket.create_connection((place.hostname, place.port)) for _ in range(100)]
    page.reload()  # of another user's connections, the oldest are closed
    expect(page.get_by_role("heading", name="Loss against risk")).to_be_visible()
    idle[0].settimeout(30)
    assert b"" == idle[0].recv(1)
    for one in idle:
        one.close()
    studio.process.send_signal(signal.SIGINT)
    assert 0 == studio.process.wait(30)
    failed = []
    second.on("requestfailed", lambda one: failed.append(one.url))
    with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
        second.reload()


@pytest.mark.slow
def test_pages_and_forms_are_served_over_tls_alone(copied, studio, tab, certificate):
    file, key = certificate
    files = ("--tls-cert", file, "--tls-key", key)
    address = studio(copied(define_patients).dsn, *files)
    assert address.startswith("https://")
    page = tab(address, viewport=WIDE, ignore_https_errors=True)
    page.get_by_role("link", name="public.patients").click()
    page.get_by_label("role of note").select_option("identifier")
    page.get_by_role("button", name="Apply the roles").click()
    expect(page.get_by_label("role of note")).to_have_value("identifier")
    (cookie,) = page.context.cookies()
    assert (True, True, "Strict") == (cookie["secure"], cookie["httpOnly"], cookie["sameSite"])
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=30) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP")
    assert page.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("scripted", [True, False])
def test_a_change_of_the_draft_is_shown_in_place_and_without_script_as_well(
    copied, studio, tab, scripted
):
    database = copied(define_patients)
    page = tab(studio(database.dsn), viewport=WIDE, java_script_enabled=scripted)
    page.get_by_role("link", name="public.patients").click()
    role = page.get_by_label("role of sex")
    role.select_option("insensitive")
    page.locator("summary").click()
    page.evaluate("() => { window.first = true; }")
    place = page.evaluate("() => window.scrollY")
    button = page.get_by_role("button", name="Apply the roles")
    button.press("Enter")
    expect(page.locator(".where")).to_contain_text("draft, not saved")
    expect(role.locator("option[selected]")).to_have_text("insensitive")
    assert scripted == page.evaluate("() => window.first === true")
    if scripted:
        expect(button).to_be_focused()
        assert place == page.evaluate("() => window.scrollY") > 0
        expect(page.locator("#toml")).to_contain_text('[columns.sex]\nrole = "insensitive"')
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".where")).not_to_contain_text("not saved")
    expect(role).to_have_value("quasi")
    page.get_by_role("button", name="Redo").click()
    expect(role).to_have_value("insensitive")
    page.get_by_role("button", name="Undo").click()
    expect(role).to_have_value("quasi")
    changed = dbanon.load_policy("public.patients", settings=database.settings).with_k(9)
    dbanon.set_policy("public.patients", changed, settings=database.settings)
    role.select_option("sensitive")
    button.click()
    expect(page.get_by_role("alert")).to_contain_text("was changed since this page was shown")
    expect(role).to_have_value("quasi")
    button.click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert scripted == page.evaluate("() => window.first === true")
    assert (page.complaints, page.foreign) == ([], [])
    studio.process.send_signal(signal.SIGINT)
    assert 0 == studio.process.wait(30)
    button.click()
    expect(page).to_have_url(re.compile("^chrome-error:"))


@pytest.mark.slow
@pytest.mark.parametrize("scripted", [True, False])
def test_who_goes_on_applies_the_roles_and_who_leaves_is_asked_first(copied, studio, tab, scripted):
    page = tab(studio(copied(define_patients).dsn), viewport=WIDE, java_script_enabled=scripted)
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.get_by_role("link", name="public.patients").click()
    expect(page.get_by_role("button", name="Save the policy")).to_have_count(0)
    page.get_by_label("role of sex").select_option("identifier")
    page.get_by_role("button", name="Next: see what each k costs").click()
    expect(page.get_by_role("heading", name="Loss against risk")).to_be_visible()
    assert asked == []
    go(page, "Columns")
    expect(page.get_by_label("role of sex")).to_have_value("identifier")
    if scripted:
        page.wait_for_load_state()  # the script begins to listen after the page is there
        page.get_by_label("role of age").select_option("identifier")
        page.get_by_role("link", name="Policy", exact=True).click()
        expect(page.get_by_label("role of age")).to_have_value("identifier")
        assert asked == ["beforeunload"]
        page.get_by_role("button", name="Apply the roles").click()
        expect(page.locator("#toml")).to_contain_text('[columns.age]\nrole = "identifier"')
        go(page, "Policy")
        assert asked == ["beforeunload"]
    assert page.complaints == []


@pytest.mark.slow
def test_a_refused_publication_names_what_to_do(copied, studio, tab):
    database = copied(define_patients)
    page = tab(studio(database.dsn), viewport=WIDE)
    page.get_by_role("link", name="public.patients").click()
    go(page, "Policy")
    text = page.get_by_label("The draft as TOML")
    written = text.input_value()
    text.fill("k = many")
    page.get_by_role("button", name="Apply to the draft").click()
    expect(page.get_by_role("alert")).to_contain_text("Not done.")
    expect(text).to_have_value("k = many")
    assert hindrances(page) == {}
    text.fill(re.sub(r"(?m)^k = \d+", "k = 5000", written))
    page.get_by_role("button", name="Apply to the draft").click()
    page.get_by_role("button", name="Save the policy").click()
    go(page, "Publish")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Not done")).to_be_visible(timeout=180_000)
    assert [] == dbanon.list_releases(settings=database.settings)


def publish_and_report(page, hand, *, name, reader):
    """Publish a table from its page Publish, and grant, schedule and report its relation."""

    def press(name, kind="button"):
        hand.press(page.get_by_role(kind, name=name, exact=True).first)

    press("Save the policy")
    expect(page.get_by_text("the policy is stored")).to_be_visible()
    press("Publish")
    expect(page.get_by_text(f"is served as anon.{name}")).to_be_visible(timeout=240_000)
    press("Readers, history and schedule", "link")
    hand.enter(page.get_by_label("Roles"), reader)
    press("Grant")
    expect(page.get_by_text(f"{reader} may now read anon.{name}")).to_be_visible()
    hand.enter(page.get_by_label("Minute, hour, day, month, weekday"), "15 3 * * *")
    press("Set the schedule")
    expect(page.get_by_text("Scheduled:")).to_be_visible()
    assert page.evaluate(TOO_WIDE) <= 0
    press("Report for the public")
    expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible(timeout=120_000)
    assert page.evaluate(TOO_WIDE) <= 0
    assert (page.complaints, page.foreign) == ([], [])


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("by", [Mouse, Keyboard])
def test_a_table_of_fifty_columns_is_published_on_a_narrow_screen_in_the_dark(
    database, studio, tab, by
):
    names = [f"c{i:02}" for i in range(47)]
    values = ", ".join(f"(random() * {3 + i})::integer" for i in range(47))
    database.execute(
        "CREATE TABLE public.broad (id integer PRIMARY KEY, age integer, sex text,"
        f" {', '.join(f'{name} integer' for name in names)});"
        f" INSERT INTO broad SELECT i, 20 + i % 50, (ARRAY['F', 'M'])[1 + i % 2], {values}"
        " FROM generate_series(1, 2000) AS i"
    )
    reader = database.role("studio_analyst")
    page = tab(studio(database.dsn), viewport=NARROW, color_scheme="dark")
    hand = by(page)
    hand.press(page.get_by_role("link", name="public.broad"))
    roles = page.get_by_label(re.compile("^role of c"))
    expect(roles).to_have_count(len(names), timeout=60_000)
    assert page.evaluate(TOO_WIDE) <= 0
    assert hindrances(page) == {}
    for name in names[:-1]:
        hand.choose(page.get_by_label(f"role of {name}"), "insensitive")
    hand.choose(page.get_by_label(f"role of {names[-1]}"), "sensitive")
    hand.press(page.get_by_role("button", name="Apply the roles"))
    expect(page.get_by_label("role of c00")).to_have_value("insensitive")
    hand.press(page.get_by_role("button", name="Undo"))
    hand.press(page.get_by_role("button", name="Redo"))
    expect(page.get_by_role("button", name="Redo")).to_be_disabled()
    hand.press(page.get_by_role("link", name="Publish", exact=True))
    publish_and_report(page, hand, name="broad", reader=reader)
    (release,) = dbanon.list_releases(settings=database.settings)
    with database.connect_as(reader) as connection:
        columns = connection.execute("SELECT * FROM anon.broad LIMIT 0").description
    assert 49 == len(columns)
    assert 5 <= release.loss.smallest_class


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("by", [Mouse, Keyboard])
def test_the_demo_is_published_granted_scheduled_and_reported(studio, tab, monkeypatch, by):
    with scratch_folder() as folder:
        home = folder / "home"
        monkeypatch.setenv("DBANON_HOME", str(home))
        page = tab(studio(None, "--demo"), viewport=WIDE)
        hand = by(page)
        hand.press(page.get_by_role("link", name="public.patients"))
        expect(page.get_by_role("heading", name="What makes rows unique")).to_be_visible()
        hand.press(page.get_by_role("button", name="Next: see what each k costs"))
        hand.enter(page.get_by_label("Values of k"), "5 10")
        hand.press(page.get_by_role("button", name="Compare on a sample"))
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
        hand.press(page.locator("#point-10"))
        expect(page.get_by_text("the draft has k = 10 now")).to_be_visible()
        assert hindrances(page) == {}
        hand.press(page.get_by_role("link", name="Next: publish"))
        publish_and_report(page, hand, name="patients", reader="analysts")
        with psycopg.connect(EmbeddedServer(home).dsn("analysts")) as analyst:
            assert analyst.execute("SELECT count(*) FROM anon.patients").fetchone()[0] > 7000
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                analyst.execute("SELECT FROM public.patients")
        studio.process.send_signal(signal.SIGINT)
        studio.process.wait(30)
        EmbeddedServer(home).stop()


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_table_that_drifted_is_published_again_once_its_policy_fits(copied, studio, tab):
    database = copied(publish_patients)
    page = tab(studio(database.dsn), viewport=WIDE)
    database.execute("ALTER TABLE patients DROP COLUMN age, ADD COLUMN height integer")
    page.reload()
    row = page.get_by_role("row").filter(has_text="public.patients")
    expect(row).to_contain_text("drifted")
    row.get_by_role("link", name="public.patients").click()
    expect(page.get_by_text("The table has no such column any more")).to_be_visible()
    expect(page.get_by_text("The policy has no role for height")).to_be_visible()
    go(page, "Publish")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("region", name="Failed")).to_contain_text("age", timeout=60_000)
    go(page, "Policy")
    text = page.get_by_label("The draft as TOML")
    text.fill(text.input_value().replace("[columns.age]", "[columns.height]"))
    page.get_by_role("button", name="Apply to the draft").click()
    page.get_by_role("button", name="Save the policy").click()
    expect(page.get_by_text("the policy is stored")).to_be_visible()
    go(page, "Publish")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("is served as anon.patients")).to_be_visible(timeout=60_000)
    assert page.complaints == []
    assert 2 == len(dbanon.list_releases(settings=database.settings))


@pytest.mark.slow
def test_an_address_and_a_browser_that_waited_too_long_are_refused(copied, tab, monkeypatch):
    late, workspace = 601.0, Workspace(copied(define_patients).settings)
    with served(monkeypatch, workspace) as access:
        access.clock = lambda: monotonic() + late
        page = tab(access.address, path=None)
        expect(page.get_by_text("this browser is not admitted")).to_be_visible()
        late = 0.0
        page.goto(access.address)
        page.get_by_role("link", name="public.patients").click()
        expect(page.get_by_role("heading", name="Columns of")).to_be_visible()
        late += 8 * 3600.0 + 1.0
        go(page, "Publish")
        expect(page.get_by_text("this browser is not admitted")).to_be_visible()
        assert 403 == page.reload().status
        assert "patients" not in page.locator("body").inner_text()
