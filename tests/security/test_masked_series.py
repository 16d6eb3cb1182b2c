"""Two releases of nearly the same persons do not give the values that masking hides."""

from functools import partial

import pytest
from data.schemas import health
from data.schemas.clinic import POLICIES, TABLES, store_policies
from data.schemas.loading import load
from selection import exhaustive_after

import dbanon
from dbanon.anonymization.registry import MASKING
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

TABLE = "public.staff"
POLICY = """
table = "public.staff"
models = {{k = 5, l = 2}}
algorithm = "mondrian"
[[masking]]
method = "{method}"
{step}
[columns]
id.role = "identifier"
ref.role = "insensitive"
age.role = "quasi"
sex = {{role = "quasi", keep = true}}
income.role = "{role}"
town.role = "insensitive"
ward.role = "sensitive"
"""
INCOMES = 'columns = ["income"]'
# The sum of the incomes stays, or is nearly that of the source.
OF_SUMS = {
    "top-coding": f'{INCOMES}\npersons = 10\nshown = "mean"',
    "bottom-coding": f'{INCOMES}\npersons = 150\nshown = "mean"',
    "kim": f"{INCOMES}\nshare = 0.3\nexact = true",
    "sullivan": f"{INCOMES}\nshare = 0.3",
    "individual-ranking": f"{INCOMES}\nk = 5",
    "microaggregation": f"{INCOMES}\nk = 5",
    "rank-swapping": f"{INCOMES}\npercent = 5",
    "swapping": f"{INCOMES}\nshare = 0.8",
    "permutation": INCOMES,
}
SOLVABLE = {**OF_SUMS, "discretization": f"{INCOMES}\nbins = 4"}
OTHERS = {
    "rounding": f"{INCOMES}\nbase = 100",
    "noise": f"{INCOMES}\nshare = 0.3",
    "correlated-noise": f"{INCOMES}\nshare = 0.3",
    "rare-to-other": 'columns = ["town"]\npersons = 16',
    "local-suppression": 'columns = ["town"]\npersons = 2\nsize = 1',
    "pram": 'columns = ["town"]\nkeep = 0.5',
}
INCOME = 98765.25
SUM = "SELECT sum(income) FROM {}"
ROWS = "SELECT * FROM anon.staff ORDER BY ref"
FRESH = {"new_series": True, "recipients_changed": True, "name": "others"}
REFUSED = r"exact values of column income, masked by .* \(k = 5\)"


def employ(database):
    database.execute(
        "CREATE TABLE public.staff (id int PRIMARY KEY, ref int, age int, sex text, income float8,"
        " town text, ward text);"
        "INSERT INTO public.staff SELECT i, i, 20 + i * 31 % 60, (ARRAY['f', 'm'])[1 + i % 2],"
        " CASE WHEN i <> 7 THEN 20000 + i * 373 % 9973 + sqrt(i) END, 't' || i * 7 % 9,"
        " 'w' || i * 11 % 13"
        " FROM generate_series(1, 200) AS i"
    )


@pytest.fixture
def people(database):
    employ(database)
    return database


def define(database, method, *, role="insensitive", columns='["income"]', k=5, whole=None):
    step = whole or {**SOLVABLE, **OTHERS}[method].replace('["income"]', columns)
    step = step.replace('["town"]', columns) if columns == '["ward"]' else step
    step = step.replace("k = 5", f"k = {k}")
    policy = policies.parse(POLICY.format(method=method, step=step, role=role))
    dbanon.set_policy(TABLE, policy, settings=database.settings)


def publish_top_coded(database):
    employ(database)
    define(database, "top-coding")
    dbanon.publish(TABLE, settings=database.settings)


def publish_microaggregated(database):
    employ(database)
    define(database, "microaggregation")
    dbanon.publish(TABLE, settings=database.settings)


@pytest.fixture(params=[publish_top_coded, publish_microaggregated])
def staff(request, copied):
    return copied(request.param)


def change(database):
    database.execute(f"UPDATE public.staff SET income = {INCOME}, town = 't1' WHERE id = 7")


def difference(database, one, other):
    """Return what the one person adds to the sum, which such methods keep."""
    ((before,),), ((after,),) = (database.execute(SUM.format(name)) for name in (one, other))
    return pytest.approx(after - before, abs=1e-3)


def join(database, persons, *, first=1000):
    database.execute(
        f"INSERT INTO public.staff SELECT {first} + i, {first} + i, 40, 'f', 30000 + i, 't1',"
        f" 'w' || i % 3 FROM generate_series(1, {persons}) AS i"
    )


def rows(database):
    return database.execute(ROWS)


def test_every_method_is_tried():
    assert set(MASKING) == {*SOLVABLE, *OTHERS}


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", OF_SUMS)
def test_two_releases_would_give_one_changed_income(people, method):
    """What whoever had the release before and that of other readers could do."""
    define(people, method)
    dbanon.publish(TABLE, settings=people.settings)
    change(people)
    dbanon.publish(TABLE, settings=people.settings, **FRESH)
    assert INCOME == difference(people, "anon.staff", "anon.others")


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", SOLVABLE)
def test_a_release_that_would_give_one_changed_income_is_refused(people, method):
    define(people, method)
    dbanon.publish(TABLE, settings=people.settings)
    change(people)
    before = rows(people)
    with pytest.raises(dbanon.CheckFailed, match=REFUSED) as refused:
        dbanon.refresh(TABLE, settings=people.settings)
    assert "release 1 is served on" in str(refused.value)
    assert "role sensitive" in refused.value.hint
    assert before == rows(people)


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", OTHERS)
def test_methods_of_which_two_releases_give_no_value_are_never_refused(people, method):
    define(people, method)
    dbanon.publish(TABLE, settings=people.settings)
    change(people)
    assert 2 == dbanon.publish(TABLE, settings=people.settings).id


@pytest.mark.exhaustive
def test_publish_refuses_as_refresh_does(staff):
    change(staff)
    with pytest.raises(dbanon.CheckFailed, match=REFUSED):
        dbanon.publish(TABLE, settings=staff.settings)


@pytest.mark.exhaustive
def test_one_new_person_is_not_solved_for(staff):
    staff.execute(f"INSERT INTO public.staff VALUES (1000, 1000, 40, 'f', {INCOME}, 't1', 'w1')")
    dbanon.publish(TABLE, settings=staff.settings, **FRESH)
    assert INCOME == difference(staff, "anon.staff", "anon.others")
    with pytest.raises(dbanon.CheckFailed, match="taken together, releases"):
        dbanon.publish(TABLE, settings=staff.settings, new_series=True)
    assert [(200,)] == staff.execute("SELECT count(*) FROM anon.staff")


@pytest.mark.exhaustive
def test_a_pool_of_new_persons_is_published_every_night(staff):
    for night in range(3):
        join(staff, 30, first=1000 * (night + 1))
        dbanon.refresh(TABLE, settings=staff.settings)
        assert [(230 + 30 * night,)] == staff.execute("SELECT count(*) FROM anon.staff")


@pytest.mark.exhaustive
def test_k_new_persons_do_not_hide_one_income_that_is_masked_with_a_sensitive_column(people):
    """New persons are masked apart from the others there."""
    define(people, "swapping", columns='["income", "ward"]')
    dbanon.publish(TABLE, settings=people.settings)
    join(people, 5)
    change(people)
    before = rows(people)
    with pytest.raises(dbanon.CheckFailed, match="goes by ward, whose published values stay"):
        dbanon.refresh(TABLE, settings=people.settings)
    assert before == rows(people)


def test_the_class_of_one_who_left_is_withheld_as_a_whole(staff):
    staff.execute("DELETE FROM public.staff WHERE id = 7")
    dbanon.refresh(TABLE, settings=staff.settings)
    ((count,),) = staff.execute("SELECT count(*) FROM anon.staff")
    assert 150 < count <= 195


@pytest.mark.exhaustive
def test_an_earlier_release_than_the_last_one_counts(staff):
    """Otherwise k persons who come and leave again would hide that one value changed meanwhile."""
    join(staff, 10)
    dbanon.refresh(TABLE, settings=staff.settings)
    change(staff)
    staff.execute("DELETE FROM public.staff WHERE id > 1000")
    with pytest.raises(dbanon.CheckFailed, match="changed since release 1, and nobody"):
        dbanon.refresh(TABLE, settings=staff.settings)
    assert [(210,)] == staff.execute("SELECT count(*) FROM anon.staff")


def test_an_unchanged_table_is_published_again(staff):
    staff.execute("UPDATE public.staff SET ref = ref WHERE id % 3 = 0")
    before = rows(staff)
    release = dbanon.publish(TABLE, settings=staff.settings)
    assert 2 == release.id
    assert before == rows(staff)


def test_of_a_dropped_release_nothing_says_that_values_stayed(staff):
    dbanon.drop_release(1, settings=staff.settings)
    with pytest.raises(dbanon.CheckFailed, match=f"{REFUSED}; nothing was published"):
        dbanon.publish(TABLE, settings=staff.settings)


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["rounding", "noise", "pram"])
def test_another_method_or_none_is_no_way_on(staff, method):
    """Values that are nearly exact, of all others, give that of who changed before."""
    change(staff)
    join(staff, 5)
    define(staff, method)
    with pytest.raises(dbanon.CheckFailed, match="masked in another way in release 1") as refused:
        dbanon.refresh(TABLE, settings=staff.settings)
    assert refused.value.hint.endswith("--new-series --recipients-changed")
    dbanon.publish(TABLE, settings=staff.settings, **FRESH)


@pytest.mark.exhaustive
def test_the_same_method_of_another_k_is_refused_whoever_came(people):
    """The means of two ways to group the same persons give single values."""
    define(people, "individual-ranking")
    dbanon.publish(TABLE, settings=people.settings)
    join(people, 5)
    define(people, "individual-ranking", k=7)
    with pytest.raises(dbanon.CheckFailed, match="masked in another way in release 1"):
        dbanon.refresh(TABLE, settings=people.settings)


WITHIN = {
    "noise": ("age = 70, sex = 'm'", 'columns = ["income"]\nshare = 0.3\nwithin = ["sex"]'),
    "rare-to-other": ("ward = 'w9'", 'columns = ["town"]\npersons = 2\nwithin = ["ward"]'),
    "local-suppression": ("ward = 'w9'", 'columns = ["ward", "town"]\npersons = 2'),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", WITHIN)
@pytest.mark.parametrize("came", [0, 5])
def test_masking_by_values_that_stay_does_not_show_who_changed(people, method, came):
    """Readers are shown the sex and the ward of before, and would see by the income who moved."""
    changed, step = WITHIN[method]
    define(people, method, whole=step)
    dbanon.publish(TABLE, settings=people.settings)
    assert 2 == dbanon.publish(TABLE, settings=people.settings).id
    people.execute(f"UPDATE public.staff SET {changed} WHERE id = 10")
    join(people, came)
    before = rows(people)
    with pytest.raises(dbanon.CheckFailed, match="whose published values stay"):
        dbanon.refresh(TABLE, settings=people.settings)
    assert before == rows(people)


@pytest.mark.parametrize("came", exhaustive_after(1, [0, 5]))
def test_values_that_stayed_are_not_shown_anew_by_another_role(people, came):
    define(people, "rounding", role="sensitive")
    dbanon.publish(TABLE, settings=people.settings)
    change(people)
    join(people, came)
    dbanon.refresh(TABLE, settings=people.settings)
    define(people, "rounding")
    with pytest.raises(dbanon.CheckFailed, match="was sensitive in release 1"):
        dbanon.refresh(TABLE, settings=people.settings)


@pytest.mark.exhaustive
def test_newcomers_are_given_no_value_that_somebody_has_by_now(people):
    """A person who is published keeps the old value, and the new one is nobody's to know."""
    define(people, "pram", columns='["ward"]')
    dbanon.publish(TABLE, settings=people.settings)
    people.execute("UPDATE public.staff SET ward = 'HIV' WHERE id = 7")
    join(people, 200)
    dbanon.refresh(TABLE, settings=people.settings)
    assert [(400,)] == people.execute("SELECT count(*) FROM anon.staff")
    assert [(0,)] == people.execute("SELECT count(*) FROM anon.staff WHERE ward = 'HIV'")


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["top-coding", "microaggregation", "swapping"])
def test_published_values_of_sensitive_columns_stay(people, method):
    define(people, method, role="sensitive")
    dbanon.publish(TABLE, settings=people.settings)
    change(people)
    before = rows(people)
    (found,) = dbanon.refresh(TABLE, settings=people.settings)
    assert (True, None) == (found.changed, found.error)
    assert [row[3] for row in before] == [row[3] for row in rows(people)]


def test_the_role_sensitive_does_not_undo_what_was_published_without_it(staff):
    change(staff)
    join(staff, 5)
    define(staff, "top-coding", role="sensitive")
    with pytest.raises(dbanon.CheckFailed, match="it was insensitive in release 1"):
        dbanon.refresh(TABLE, settings=staff.settings)


ANATOMY = """
table = "public.staff"
anatomy = true
models = {l = 3}
masking = [{method = "swapping", columns = ["ward"], share = 0.5}]
rest = "drop"
[columns]
age.role = "quasi"
ward.role = "sensitive"
"""


def test_the_same_values_in_buckets_are_published_again_and_no_others(people, tmp_path):
    file = tmp_path / "staff.toml"
    file.write_text(ANATOMY)
    dbanon.set_policy(TABLE, file, settings=people.settings)
    dbanon.publish(TABLE, settings=people.settings)
    assert 2 == dbanon.publish(TABLE, settings=people.settings).id
    people.execute("UPDATE public.staff SET ward = 'w99' WHERE id = 7")
    with pytest.raises(dbanon.CheckFailed, match="release 2 is served on"):
        dbanon.publish(TABLE, settings=people.settings)


@pytest.mark.exhaustive
def test_one_changed_value_of_a_dataset_is_not_solved_for(database):
    load(database, health)
    step = "columns = ['total_cost'], method = 'top-coding', persons = 9, shown = 'mean'"
    store_policies(database)
    policy = POLICIES["encounters"].replace('cost.role = "sensitive"', 'cost.role = "insensitive"')
    masked = policies.parse(f"masking = [{{{step}}}]\n{policy}")
    dbanon.set_policy("encounters", masked, settings=database.settings)
    again = partial(dbanon.publish_dataset, dataset_of(TABLES), k=5, settings=database.settings)
    again(max_suppressed=0.0)
    again(max_suppressed=0.0)
    served = "SELECT sum(total_cost) FROM anon.encounters"
    before = database.execute(served)
    database.execute(
        "UPDATE public.encounters SET total_cost = 50000 WHERE encounter_id ="
        " (SELECT encounter_id FROM public.encounters ORDER BY total_cost DESC LIMIT 1)"
    )
    with pytest.raises(dbanon.CheckFailed, match="exact values of column total_cost"):
        again(max_suppressed=0.0)
    assert before == database.execute(served)
    again(max_suppressed=0.0, new_series=True, recipients_changed=True)
    assert before != database.execute(served)
