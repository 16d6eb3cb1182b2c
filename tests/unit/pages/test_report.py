"""The text of a page, whatever the report holds."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dbanon.domain.policy import ColumnRule, Comparison, Condition, ModelSpec, Policy, Role
from dbanon.domain.release import CheckReport, CheckResult, Verdict
from dbanon.domain.report import (
    Association,
    Attack,
    Classification,
    Disclosure,
    Distribution,
    Risk,
    UniqueSet,
    Utility,
)
from dbanon.pages.report import association_table, beyond, choices, of_loss, of_risk, render

EMPTY = {"meta", "link", "br", "input", "img", "base", "wbr"}
HAS_LINKS = {"href", "src", "srcset", "action", "data", "poster", "style"}


class Page(HTMLParser):
    """The elements of a page, its words, and whether all that is opened is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.words, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def named(self, tag):
        return [attrs for found, attrs in self.elements if found == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def shape(page):
    return {tag for tag, _ in page.elements}, {name for _, attrs in page.elements for name in attrs}


@pytest.mark.parametrize("kind", ["report", "planned", "public", "bare", "hostile"])
def test_everything_that_is_opened_is_closed_and_ids_are_one(request, kind):
    page = Page(render(request.getfixturevalue(kind)))
    assert page.open == []
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {attrs["href"] for attrs in page.named("a")}
    assert targets <= {f"#{one}" for one in ids}
    labels = {attrs["aria-labelledby"] for _, attrs in page.elements if "aria-labelledby" in attrs}
    assert labels
    assert labels <= set(ids)


def test_the_same_report_gives_the_same_page(report):
    assert render(report) == render(replace(report))


def test_a_page_says_what_a_report_says(report):
    text = Page(render(report)).text
    said = [
        "✔ Passed The database counted every model",
        "release 12 of public.patients , published 2026-03-01 09:30+00:00",
        "k-anonymity all rows at least 5 5 ✔ Passed",
        "t-closeness chapter at most 0.5 0.4312 ✔ Passed",
        "prosecutor 20.00% 4.90% 0.00% 20.00% the relation",
        "20 to 49 28.79% 2,266 rows 71 2,266",
        "50 or more 37.73%",
        "creatinine, sample_yr, sex 1,211 15.38%",
        "guesser at most candidates tried",
        "homogeneity: chapter 31.60% 30.70% to 32.50%",
        "The attacker takes the nearest published record.",
        "age: 2.10% apart",
        "[85,101) 4.40% 3.98%",
        "age, death 0.57 0.51",
        "about 0.50% 14.20% 14.20% 1,240% 390.00% 1,000",
        "death gradient boosting accuracy 81.00% 79.00% 72.00%",
        "nothing finer than bands of 5; one band from 85 on int4range",
        "masked by rounding (base 0.1)",
        "icd version 3",
        "analysts auditors",
        "SELECT model, achieved FROM dbanon.verify('anon.x');",
        "rows: 7,883; 12 more do not meet the conditions",
        "'kappa' is masked",
        "unique by values as the policy's floors leave them (age: nothing finer than bands of 5);",
        "not judged: ward is masked by pram (keep 0.8)",
        "not tried: join, intersection, as a second relation is needed",
    ]
    assert [one for one in said if one not in text] == []


def test_a_plan_promises_nothing_of_the_database(planned):
    text = Page(render(planned)).text
    assert "○ Planned Nothing is published." in text
    assert "The database counted every model" not in text
    assert "release none yet" in text
    assert "No role was named." in text
    assert "k-anonymity all rows at least 5 5 ○ Met" in text
    assert "Left out for want of time: utility." in text


def test_rows_that_a_live_view_hides_are_not_said_to_be_published(report):
    results = (CheckResult("k-anonymity", None, 5, 6, 10, 0, 67, Verdict.PASSED),)
    shown = replace(report, checks=CheckReport(report.relation, results), hidden=7_804)
    text = Page(render(shown)).text
    assert "rows published" not in text
    assert "rows shown now 67 rows hidden since 7,804 classes 10" in text
    assert shown.hiding == results[0]
    assert report.hiding is None


def test_what_failed_is_said_first_by_a_sign_and_a_word(report):
    results = (CheckResult("k-anonymity", None, 5, 4, 10, 2, 60, Verdict.FAILED),)
    text = Page(render(replace(report, checks=CheckReport(report.relation, results)))).text
    assert "✘ Failed Some class does not meet a model." in text
    assert "✘ Failed 2 of 10 classes fail" in text


def test_what_was_not_counted_has_not_passed(report):
    text = Page(render(replace(report, checks=CheckReport(report.relation, ())))).text
    assert "○ Not checked" in text
    assert "✔" not in text


def test_what_is_missing_is_said_to_be(bare):
    text = Page(render(bare)).text
    assert "None was tried." in text
    assert "No sensitive column, or not computed." in text
    assert text.count("Not computed.") == 6
    assert "No role but the owner may read it." in text


def test_a_public_page_has_nothing_of_the_source_and_no_heading(report, public):
    heading = "Confidential: contains figures of the source"
    assert heading in Page(render(report)).text
    text = Page(render(public)).text
    said = [
        "Public report of what is served",
        "rows shown now 7,871 classes 386 smallest class 5",
        "Detail of age lost 3.10%",
        "age 3.10% 3.10% sex 0.00%",
        "k-anonymity of patient_id, 5 required: passed when it was published",
    ]
    assert [one for one in said if one not in text] == []
    gone = (heading, "Who is unique", "Attacks", "Distributions", "7,883")
    assert [one for one in gone if one in text] == []


def test_sets_of_columns_beyond_ten_are_folded_and_each_attack_is_told_once(report):
    sets = tuple(UniqueSet((f"c{i}",), 90 - i, 0.5) for i in range(12))
    tried = [
        Attack("skewness", column, 90, 3, 0.5, 0.4, 0.6, 0.1, None, "guesses") for column in "ab"
    ]
    found = Risk((), (), unique_sets=sets, attacks=tuple(tried))
    text = Page(render(replace(report, risk=found))).text
    assert "2 other sets of columns" in text
    assert text.index("c9") < text.index("2 other sets of columns") < text.index("c11")
    assert "skewness guesses" in text.split("What each attack does")[1]
    assert 1 == text.split("What each attack does")[1].count("guesses")


def test_it_is_said_how_open_ranges_are_spread_where_there_are_some(report):
    utility = Utility(
        (Distribution("age", ("[0,9)", "[9,99) or more"), (0.6, 0.4), (0.6, 0.4), 0.0),)
    )
    said = "A row of an open range, such as 90+ or <18, is spread evenly"
    assert said in Page(render(replace(report, utility=utility))).text
    assert said not in Page(render(report)).text


def test_the_only_style_is_known_to_the_browser_by_its_digest(report):
    text = render(report)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = Page(text).named("meta")[1]["content"]
    assert f"style-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("kind", ["report", "planned", "public", "bare", "hostile"])
def test_a_page_loads_nothing_and_runs_nothing(request, kind):
    page = Page(render(request.getfixturevalue(kind)))
    found = [
        (tag, name, value)
        for tag, attrs in page.elements
        for name, value in attrs.items()
        if (name in HAS_LINKS and not value.startswith("#")) or name.startswith("on")
    ]
    assert found == []
    assert shape(page)[0].isdisjoint({"script", "link", "img", "iframe", "base", "object", "form"})


def test_hostile_names_make_no_element_and_no_attribute(report, hostile):
    harmless, attacked = Page(render(report)), Page(render(hostile))
    assert shape(attacked)[0] <= shape(harmless)[0]
    assert shape(attacked)[1] <= shape(harmless)[1]


def test_hostile_names_are_shown_as_text(hostile):
    page = Page(render(hostile))
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}{% raw %}" in page.text
    assert "&lt;b&gt;" in page.text
    assert r"two\u000alines\u000dand a tab\u0009" in page.text
    assert r"\u202egnp.exe\u2066\u200b" in page.text
    values = [value or "" for _, attrs in page.elements for value in attrs.values()]
    hidden = re.compile("[\u200b\u202a-\u202e\u2066-\u2069]")
    assert [text for text in [*page.words, *values] if hidden.search(text)] == []


def test_no_value_that_a_policy_names_is_shown(report):
    hidden = "hidden-value"
    rules = (
        ColumnRule("town", Role.QUASI, order=("a", hidden), pooled=(hidden,)),
        ColumnRule("disease", Role.SENSITIVE, order=("flu", hidden)),
    )
    where = (
        Condition("disease", Comparison.EQUAL, hidden),
        Condition("disease", Comparison.IN, ("flu", hidden)),
        Condition("town", Comparison.IS_NOT_NULL),
    )
    policy = Policy(report.table, rules, where=where)
    text = Page(render(replace(report, policy=policy))).text
    assert hidden not in text
    assert "2 values in an order; 1 prefix in one cell" in text
    assert ("rows", "disease = ..., disease in ..., town is not null") in choices(policy)


def test_every_key_with_a_title_is_among_the_settings_of_a_page(report):
    policy = Policy(report.table, (), max_stale=0.25, withdraw_share=0.75, pool_size=7, labels=True)
    assert [
        ("name", "default"),
        ("algorithm", "auto"),
        ("labels", "published beside the release"),
        ("a class is withdrawn when so much of it is gone", "75%"),
        ("new persons are published by at least", "7"),
        ("warned of, if shown with former values", "more than 25% of the rows"),
    ] == choices(policy)


def disclosed(column, highest, guessed, baseline):
    return Disclosure(column, 4, highest, 2.0, guessed, baseline, 0.0, 0.0, 2.0, 0.1)


def test_the_first_screen_has_the_worst_of_all_sensitive_columns_and_names_it(report):
    found = (disclosed("a", 0.9, 0.94, 0.93), disclosed("b", 0.97, 0.5, 0.1))
    bars = of_risk(replace(report, risk=Risk((), (), disclosures=found)))
    assert [("Surest belief in a value of b", 0.97)] == [(one.label, one.share) for one in bars[:1]]
    assert ["a", "b"] == [one.label.split()[2] for one in bars[1:]]
    assert [
        "of 2 sensitive columns the surest",
        "of 2 sensitive columns the best guessed",
        "of 2 sensitive columns the furthest above a guesser",
    ] == [one.about.split("; ")[1] for one in bars]


def test_attacks_beyond_what_models_bound_are_on_the_first_screen_with_what_they_assume():
    def attack(name, column, rate, *, baseline=0.1, expected=None):
        return Attack(name, column, 100, 3, rate, 0.0, 1.0, baseline, expected, f"knows {column}")

    tried = (
        attack("within", None, 0.2, expected=0.2),
        attack("guess", "a", 0.1),
        attack("over", None, 0.21, expected=0.2),
        attack("known", "a", 0.5),
        attack("known", "b", 0.94),
    )
    found = [(one.label, one.text, one.about) for one in beyond(Risk((), (), attacks=tried))]
    assert [
        ("known: b", "94.00%", "knows b"),
        ("over", "21.00%", "knows None"),
    ] == found


def test_attacks_that_models_bound_are_not_on_the_first_screen(report):
    assert "Each assumes somebody who" in Page(render(report)).text
    within = replace(report, risk=replace(report.risk, attacks=report.risk.attacks[:2]))
    assert "Each assumes somebody who" not in Page(render(within)).text


def test_where_nothing_can_be_predicted_no_accuracy_is_lost(report):
    guessed = (Classification("sex", "boosting", (0.5, 0.4, 0.5), None),)
    (bar,) = of_loss(replace(report, utility=Utility(classifications=guessed)))[1:]
    assert (None, "nothing to lose") == (bar.share, bar.text)
    assert "sex cannot be predicted by boosting even from the source" in bar.about
    predicted = (*guessed, Classification("age", "boosting", (0.7, 0.7, 0.5), None))
    (bar,) = of_loss(replace(report, utility=Utility(classifications=predicted)))[1:]
    assert ("Accuracy lost in predicting age", 0.0) == (bar.label, bar.share)


def test_pairs_that_are_measured_come_first_and_those_kept_last_with_the_reason():
    source = ((1.0, 0.8, None), (0.8, 1.0, 0.3), (None, 0.3, 1.0))
    published = ((1.0, None, 0.2), (None, 1.0, 0.25), (0.2, 0.25, 1.0))
    rows = association_table(Association(("a", "b", "c"), source, published, exact=("a", "b"))).rows
    assert "b, c" == rows[0][0]
    assert [("a, c", "undefined"), ("a, b", "published as they are")] == [
        (row[0].text, row[0].note.split(":")[0]) for row in rows[1:]
    ]


def test_of_anatomy_it_is_said_what_is_hidden_and_what_the_bars_mean(report):
    models = (ModelSpec("probabilistic-l-diversity", {"l": 3}),)
    policy = replace(report.policy, anatomy=True, models=models)
    text = Page(render(replace(report, policy=policy))).text
    said = [
        "quasi-identifiers are published exactly",
        "no value is that of more than one in 3 of the persons of a bucket",
        "the greatest share in a bucket",
        "the row, and not the value",
        "Rows that are alike",
        "What a bucket says",
        "buckets 386 smallest bucket 5",
        "What every bucket must achieve",
        "the most frequent one of their bucket",
    ]
    assert [one for one in said if one not in text] == []
    assert "quasi-identifiers are published exactly" not in Page(render(report)).text
