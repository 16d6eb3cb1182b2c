"""The page of a comparison."""

import math
import re
from dataclasses import replace

import pytest
from browsers import hindrances
from selection import exhaustive_after

from dbanon.actions.compare import Compared, Comparison
from dbanon.domain.assignment import LossReport
from dbanon.domain.table import TableName
from dbanon.pages.comparison import Axis, render

KS = (2, 5, 10)


def loss(k, ncp):
    return LossReport(1_000, 10, 990 // k, k, ncp, {})


@pytest.fixture
def compared():
    results = tuple(
        Compared(name, k, loss(k, share * k), 1.25)
        for name, share in (("auto", 0.01), ("k-member", 0.02), ("<b>", 0.0))
        for k in KS
    )
    refused = (Compared("incognito", 5, reason="too many nodes <script>"),)
    return Comparison(TableName("public", "a<b>"), 1_000, 3, KS, results + refused, ("disease",))


def test_every_algorithm_and_k_has_a_row_and_a_point(compared):
    text = render(compared)
    assert text.count('<g class="point">') == 9
    assert text.count('<th role="rowheader"') == 9
    assert "auto, k = 5: 5.00% lost, 20.00% at most" in text
    assert "k = 2, 5, 10, l = 3 (disease)" in text
    assert "too many nodes &lt;script&gt;" in text
    assert "<b>" not in text
    assert text == render(compared)


def test_less_loss_lies_to_the_left_and_less_risk_below(compared):
    places = re.findall(
        r'<use href="#marker(\d)" x="([\d.]+)%" y="([\d.]+)%"/></g>', render(compared)
    )
    points = {(int(i), n % 3): (float(x), float(y)) for n, (i, x, y) in enumerate(places)}
    for n in range(3):
        assert points[2, n][0] < points[0, n][0] < points[1, n][0]
        assert points[0, n][1] == points[1, n][1] == points[2, n][1]
    assert points[0, 0][1] < points[0, 1][1] < points[0, 2][1]


def test_each_k_has_a_tick_where_its_classes_are_larger_than_it(compared):
    results = [replace(one, loss=loss(2 * one.k, 0.1)) for one in compared.results if one.loss]
    text = render(replace(compared, results=tuple(results)))
    assert [*map(str, KS)] == re.findall(r'<text class="end"[^>]*>k = (\d+)</text>', text)


def test_an_axis_has_round_figures_within_its_ends():
    axis = Axis.of([0.008, 0.13])
    assert axis.round_shares == pytest.approx([0.01, 0.02, 0.05, 0.1])
    assert all(0 < axis.at(share) < 1 for share in axis.round_shares)
    assert axis.at(0.0) == 0.0
    assert axis.at(0.02) - axis.at(0.01) == pytest.approx(axis.at(0.1) - axis.at(0.05))
    assert len(Axis.of([1e-6, 1.0]).round_shares) <= 8
    assert math.isfinite(Axis.of([]).at(1.0))


def test_where_nothing_came_to_an_end_nothing_is_drawn():
    found = Comparison(TableName("public", "t"), 9, 1, (5,), (Compared("auto", 5, reason="no"),))
    assert "<figure>" not in render(found)
    assert "No algorithm came to an end." in render(found)


@pytest.mark.parametrize("width", exhaustive_after(1, [400, 1280]))
def test_a_comparison_is_in_nobodys_way(compared, show, width):
    shown = show(render(compared), viewport={"width": width, "height": 800})
    assert shown.complaints == []
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [one.bounding_box() for one in shown.page.locator(".point use").all()]
    assert all(box["width"] > 5 and box["height"] > 5 for box in boxes)
    assert hindrances(shown.page) == {}
