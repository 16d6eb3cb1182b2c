"""What the table of attacks is made of: they succeed on naive releases, and keep bounds on ours."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from dbanon.anonymization.attacks.pair import Shown, attack_both
from dbanon.anonymization.attacks.registry import attack
from dbanon.domain.outcomes import Stages

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ASKED = {"samples": 10_000, "seed": 1, "stages": Stages()}


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("attackers.made")


@pytest.fixture(scope="module")
def wards(made):
    encoded, policy = made.wards()
    return encoded.take(np.arange(2_000)), policy


def rates(release):
    found = attack(release.released, release.policy, **ASKED)
    return {one.name: one for one in found.attacks}


def test_leaving_out_names_hides_nobody(made, wards):
    found = rates(made.as_it_is(*wards))
    assert found["re-identification, journalist"].rate == 1.0
    assert found["re-identification, prosecutor"].rate > 0.4
    assert found["homogeneity"].rate > 0.5


@pytest.mark.exhaustive
@pytest.mark.parametrize("setting", ["l = 1", "l = 3", "entropy 3", "t = 0.2"])
def test_what_we_publish_keeps_its_bounds(made, wards, setting):
    found = rates(made.ours(*wards, 10, setting))  # of 5, too many classes overlap for a bound
    bounded = [one for one in found.values() if one.expected is not None]
    assert {"re-identification, prosecutor", "linkage by distance"} < {one.name for one in bounded}
    assert [one for one in bounded if one.low > one.expected] == []
    # Distinct values bound no guess: nine of ten in a ward have the same.
    is_bounded = found["skewness"].expected is not None
    assert is_bounded <= (setting in {"entropy 3", "t = 0.2"})
    assert is_bounded or setting != "entropy 3"
    assert found["homogeneity"].expected == (None if setting == "l = 1" else 0.0)


@pytest.mark.exhaustive
def test_grouping_anew_tells_what_whole_classes_do_not(made, wards):
    first = made.ours(*wards, 5, "l = 3")
    rows = np.arange(first.released.table.n_rows)
    found = {}
    for keeps_atoms in (False, True):
        second = made.grouped_again(first, k=10, keeps_atoms=keeps_atoms)
        shown = [Shown(one.released, one.policy, rows) for one in (first, second)]
        told = attack_both(*shown, is_judged=keeps_atoms, **ASKED)
        found[keeps_atoms] = {one.name: one for one in told.attacks}
    assert found[False]["join"].rate > 0.2 >= found[True]["join"].rate
    assert found[True]["join"].expected == 0.2
    assert found[False]["intersection to one value"].rate > 0
    assert found[True]["intersection to one value"].rate == 0
