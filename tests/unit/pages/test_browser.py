"""Pages as a browser shows, prints and reads them out."""

import re

import pytest
from browsers import hindrances
from playwright.sync_api import expect
from selection import each_once

from dbanon.pages.report import render

FULL = ["report", "hostile"]
NARROW, WIDE = {"width": 400, "height": 800}, {"width": 1280, "height": 800}
TABLET = {"width": 800, "height": 900}
PAPER = {"width": 680, "height": 960}  # A4 within its margins

WIDER = """width => [...document.querySelectorAll('body *')]
    .filter(one => !one.matches('.skip, thead, thead *'))
    .map(one => [one.tagName, one.textContent.slice(0, 30), one.getBoundingClientRect()])
    .filter(([, , box]) => box.width > 0 && (box.right > width + 1 || box.left < -1))
    .map(([tag, text, box]) => `${tag} ${text} ${box.left} ${box.right}`)"""
BARS = """() => [...document.querySelectorAll('svg.bar')].map(bar => [
    bar.getBoundingClientRect().width, bar.getBoundingClientRect().height,
    Math.max(0, ...[...bar.querySelectorAll('.fill:not(.least)')]
        .map(fill => fill.getBoundingClientRect().width)),
    bar.querySelector('title')?.textContent ?? null])"""
FOCUSED = """() => { const one = document.activeElement, style = getComputedStyle(one);
    return [one.textContent.trim() || one.id, style.outlineStyle, parseFloat(style.outlineWidth)];
}"""
GROUND = "() => getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("kind", [*FULL, "planned", "bare"])
def test_a_page_opens_from_disk_without_network_or_complaint(request, show, kind):
    shown = show(render(request.getfixturevalue(kind)))
    assert len(shown.requests) == 1
    assert shown.requests[0].startswith("file://")
    assert shown.complaints == []
    assert "Summary" in shown.page.locator("nav").inner_text()


def test_the_browser_refuses_what_a_page_should_not_do(report, show):
    added = (
        "<script>document.title = 'run'</script><img src='http://127.0.0.1:9/x.png'><p style='x'>"
    )
    shown = show(render(report).replace("</main>", f"{added}</main>"))
    assert shown.page.title() == "Report of anon.patients: Passed"
    assert shown.failures == [("http://127.0.0.1:9/x.png", "csp")]
    assert len(shown.complaints) == 3


def test_bars_are_as_long_as_their_figures(report, show):
    page = show(render(report)).page
    bars = page.evaluate(BARS)
    drawn = [bar for bar in bars if bar[3] is not None]
    assert len(drawn) > 40
    assert [bar for bar in drawn if bar[0] < 50 or bar[1] < 5] == []
    # Of the first screen, where bars end at 100%.
    first = page.locator(".groups svg.bar").count()
    assert first == 8
    for width, _, filled, text in bars[:first]:
        assert filled / width == pytest.approx(float(text.rstrip("%")) / 100, abs=0.004)


def test_first_screen_has_verdict_models_and_the_picture(report, show):
    page = show(render(report), viewport=WIDE).page
    last = [page.locator(one).last.bounding_box() for one in (".word", ".first tr", ".bars li")]
    assert max(box["y"] + box["height"] for box in last) < 800


@pytest.mark.parametrize("kind", FULL)
@pytest.mark.parametrize("viewport", [NARROW, TABLET, WIDE, PAPER])
def test_nothing_is_wider_than_the_screen(request, show, kind, viewport):
    page = show(render(request.getfixturevalue(kind)), viewport=viewport).page
    for closed in page.locator("details").all():
        closed.evaluate("one => one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert page.evaluate(WIDER, viewport["width"]) == []


def test_all_can_be_reached_by_keyboard(report, show):
    page = show(render(report)).page
    reached = []
    for _ in range(13):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
    assert [name for name, *_ in reached] == [
        "Skip to the content",
        *("Summary", "Risk", "Utility", "Policy", "Readers", "Provenance", "Checks"),
        "theme-system",
        "What each attack does",
        "Other metrics",
        *reached[-2][:1],
        *reached[-1][:1],
    ]
    outlines = [(style, width) for _, style, width in reached[:11]]
    assert [one for one in outlines if one[0] == "none" or one[1] < 2] == []


def test_links_lead_to_chapters_that_nothing_covers(report, show):
    page = show(render(report)).page
    bar = page.locator(".top").bounding_box()
    for name in ("Checks", "Risk", "Utility", "Policy", "Provenance", "Readers"):
        link = page.locator("nav").get_by_role("link", name=name, exact=True)
        link.focus()
        page.keyboard.press("Enter")
        target = page.locator(link.get_attribute("href"))  # the address may not have changed yet
        expect(target).to_be_in_viewport(ratio=1)  # waits until it is scrolled to
        box = target.bounding_box()
        assert bar["height"] <= box["y"] < 800 - box["height"]


def test_the_first_link_skips_to_the_content(report, show):
    page = show(render(report)).page
    page.keyboard.press("Tab")
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_details_open_by_keyboard(report, show):
    page = show(render(report)).page
    page.locator("summary").first.focus()
    assert not page.get_by_text("nearest published record").is_visible()
    page.keyboard.press("Enter")
    assert page.get_by_text("nearest published record").is_visible()


def test_colours_follow_the_system_until_somebody_chooses(report, show):
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
    assert show(render(report), color_scheme="light").page.evaluate(GROUND) == light
    page = show(render(report), color_scheme="dark").page
    assert page.evaluate(GROUND) == dark
    page.locator("#theme-system").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(GROUND) == light
    page.keyboard.press("ArrowRight")
    assert page.evaluate(GROUND) == dark
    page.emulate_media(color_scheme="light")
    assert page.evaluate(GROUND) == dark


@pytest.mark.parametrize("kind", FULL)
def test_nothing_is_cut_off_in_print(request, show, kind):
    page = show(render(request.getfixturevalue(kind)), viewport=PAPER, color_scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]
    assert page.evaluate(WIDER, PAPER["width"]) == []
    hidden = "() => [...document.querySelectorAll('details > *')].filter(one => !one.offsetHeight)"
    assert page.evaluate(f"({hidden})().length") == 0
    assert page.evaluate(GROUND) == "rgb(255, 255, 255)"
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    assert paper.startswith(b"%PDF-")
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper))
    assert 3 <= pages <= 30


@pytest.mark.parametrize(
    ("kind", "viewport", "colours"),
    each_once(["report", "bare"], [NARROW, WIDE], ["dark", "light"]),
)
def test_nothing_serious_is_in_the_way_of_anybody(request, show, kind, viewport, colours):
    text = render(request.getfixturevalue(kind))
    assert hindrances(show(text, viewport=viewport, color_scheme=colours).page) == {}


def test_axe_finds_what_is_serious(report, show):
    spoiled = render(report).replace('<html lang="en">', "<html>")
    assert "html-has-lang" in hindrances(show(spoiled).page)
