"""What comparing releases reveals, in words and held against what it revealed before."""

from dataclasses import replace

import pytest

from dbanon.domain.release import Against, CellResult, CheckResult, Composition, Exposure, Verdict
from dbanon.domain.table import TableName

PEOPLE = TableName("public", "people")


def result(release, failing, model="l-diversity"):
    verdict = Verdict.FAILED if failing else Verdict.PASSED
    found = CheckResult(model, "disease", 2, 1, 40, failing, 200, verdict)
    return CellResult(release, PEOPLE, found)


def composition(*results, against=()):
    numbers = tuple(one.release for one in results)
    return Composition(PEOPLE, 200, numbers, (), results, tuple(against))


@pytest.mark.parametrize("present", [5, 7])
@pytest.mark.parametrize("worse", [5, 7, 8])
def test_a_release_gets_worse_whatever_other_relations_are_like(present, worse):
    before = composition(result(5, 0), result(7, 10), result(8, {5: 0, 7: 10}[present]))
    failing = {5: 0, 7: 10, 8: {5: 0, 7: 10}[present]}
    now = composition(*(result(number, n + (number == worse)) for number, n in failing.items()))
    assert now.is_worse_than(before)


@pytest.mark.parametrize("present", [5, 7])
def test_what_was_revealed_stays_revealed(present):
    before = composition(result(5, 0), result(7, 10), result(8, {5: 0, 7: 10}[present]))
    now = composition(result(5, 0), result(7, 10), result(8, {5: 0, 7: 10}[present]))
    assert not now.is_worse_than(before)


def test_what_was_never_asked_fails_nowhere_before():
    before = composition(result(5, 0), result(7, 10))
    assert not composition(result(5, 0), result(7, 10), result(8, 0)).is_worse_than(before)
    assert composition(result(5, 0), result(7, 10), result(8, 1)).is_worse_than(before)


def test_the_persons_of_cells_are_counted_over_all_releases():
    before = composition(result(7, 3, model="k-anonymity"))
    assert not composition(result(8, 3, model="k-anonymity")).is_worse_than(before)
    assert composition(result(8, 4, model="k-anonymity")).is_worse_than(before)


def test_a_release_that_only_leaves_smaller_groups_is_refused_with_a_reason():
    before = composition(result(1, 0), result(2, 0))
    now = replace(composition(result(1, 0), result(2, 0), result(3, 0)), small=2)
    assert now.is_worse_than(before)
    (reason,) = now.reasons_against(before)
    assert reason == (
        "compared with the other releases of public.people, 2 more groups are smaller than k"
    )


def test_groups_that_were_small_before_are_no_reason():
    before = replace(composition(result(1, 0), result(2, 0)), small=2)
    now = replace(composition(result(1, 0), result(2, 0), result(3, 1)), small=2)
    assert tuple(one.message for one in now.warnings) == now.reasons_against(before)


def test_nothing_is_said_of_a_pair_of_releases_that_reveals_nothing():
    pairs = [
        Against(number, PEOPLE, 200, 200, 2, 9, 0, (Exposure("disease", 2, 0, 0),))
        for number in (1, 2)
    ]
    (line,) = composition(result(1, 0), result(2, 1), result(3, 1), against=pairs).warnings
    assert str(line).startswith("taken together, releases 1, 2, 3 fail their models")


def test_no_number_of_persons_below_k_is_in_a_finding():
    def named(below, exposed, to_one):
        exposures = (Exposure("disease", 3, exposed, to_one),)
        return Against(7, PEOPLE, 200, 190, 5, 1, below, exposures).findings

    assert (
        "compared with release 7: fewer than 5 persons below k = 5",
        "compared with release 7: fewer than 5 persons below l = 3 of disease",
        "compared with release 7: disease of fewer than 5 persons is known",
    ) == named(4, 3, 1)
    assert (
        "compared with release 7: 1,005 persons below k = 5",
        "compared with release 7: 12 persons below l = 3 of disease",
        "compared with release 7: disease of 5 persons is known",
    ) == named(1_005, 12, 5)
