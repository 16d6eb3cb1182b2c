"""Linked tables in the studio: from choosing them to a release with its report and history."""

import pytest
from browsers import Keyboard, Mouse, hindrances
from data.schemas.clinic import TABLES, fill_clinic
from playwright.sync_api import expect

import dbanon


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("by", [Mouse, Keyboard])
def test_a_steward_publishes_linked_tables_from_choosing_them_to_their_history(
    copied, studio, tab, by
):
    database = copied(fill_clinic)
    reader = database.role("studio_analyst")
    page = tab(studio(database.dsn), viewport={"width": 1280, "height": 800})
    hand = by(page)
    assert hindrances(page) == {}
    hand.choose(page.get_by_label("Table with one row per person"), "public.persons")
    for name in TABLES[1:]:
        hand.check(page.get_by_role("checkbox", name=f"public.{name}"))
    hand.press(page.get_by_role("button", name="Open them together"))
    expect(page.get_by_role("cell", name="each row")).to_be_visible()
    hand.enter(page.get_by_label("Values of k"), "5 8")
    hand.press(page.get_by_role("button", name="Plan on all persons"))
    rows = page.get_by_role("region", name="Plan").get_by_role("row")
    expect(rows).to_have_count(1 + 2 * len(TABLES), timeout=120_000)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0, timeout=60_000)
    assert hindrances(page) == {}
    publish = page.get_by_role("region", name="Publish together")
    hand.enter(publish.get_by_label("k", exact=True), "5")
    hand.enter(publish.get_by_label("Roles that may read all of them"), reader)
    hand.press(publish.get_by_role("button", name="Publish the tables"))
    expect(page.get_by_text("3 tables are served together")).to_be_visible(timeout=120_000)
    hand.press(page.get_by_role("button", name="Report for the public"))
    expect(page.get_by_role("heading", name="Report for the public")).to_be_visible(timeout=120_000)
    expect(page.get_by_role("table", name="All releases, newest first")).to_be_visible()
    assert hindrances(page) == {}
    assert (page.complaints, page.foreign) == ([], [])
    lines = page.locator("#commands").text_content().splitlines()
    assert f"dbanon publish --dataset dataset.toml --k 5 --grant {reader}" in lines
    releases = dbanon.list_releases(settings=database.settings)
    (names,) = {one.dataset for one in releases}  # in the order of the page
    assert {f"public.{name}" for name in TABLES} == {*names}
    with database.connect_as(reader) as connection:
        for name in TABLES:
            (rows,) = connection.execute(f"SELECT count(*) FROM anon.{name}").fetchone()
            assert rows > 0
    hand.press(page.get_by_role("link", name="Readers, refreshes and schedule"))
    hand.enter(page.get_by_label("Minute, hour, day, month, weekday"), "15 3 * * *")
    hand.press(page.get_by_role("button", name="Set the schedule"))
    expect(page.get_by_text("Scheduled:")).to_be_visible()
    hand.press(page.get_by_role("navigation").get_by_role("link", name="Tables", exact=True))
    expect(page.get_by_role("link", name=", ".join(names))).to_be_visible()
