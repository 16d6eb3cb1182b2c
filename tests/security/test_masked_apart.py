"""Masked values tell nothing of persons who are not published."""

import pytest
from selection import exhaustive_after

import dbanon
from dbanon.anonymization.registry import MASKING

TABLE = "public.staff"
POLICY = """
table = "public.staff"
models = {k = 5, l = 2}
algorithm = "mondrian"
max_suppressed = 0.01
[columns]
id.role = "identifier"
ref.role = "insensitive"
age.role = "quasi"
sex = {role = "quasi", keep = true}
income.role = "insensitive"
bonus.role = "insensitive"
town.role = "insensitive"
ward.role = "sensitive"
"""
NUMBERS = '["income", "bonus"]'
STEPS = {
    "top-coding": f'columns = {NUMBERS}\npersons = 10\nshown = "mean"',
    "bottom-coding": f'columns = {NUMBERS}\npersons = 10\nshown = "mean"',
    "rounding": f"columns = {NUMBERS}\nbase = 7",
    "discretization": f'columns = {NUMBERS}\nbins = 4\nby = "width"',
    "rare-to-other": 'columns = ["town", "ward"]\npersons = 16',
    "local-suppression": 'columns = ["town", "ward"]\npersons = 2',
    "noise": f"columns = {NUMBERS}\nshare = 0.3",
    "correlated-noise": f"columns = {NUMBERS}\nshare = 0.3",
    "kim": f"columns = {NUMBERS}\nshare = 0.3\nexact = true",
    "sullivan": f"columns = {NUMBERS}\nshare = 0.3",
    "individual-ranking": f"columns = {NUMBERS}\nk = 3",
    "microaggregation": f"columns = {NUMBERS}\nk = 3\nrestore_variance = true",
    "rank-swapping": f'columns = {NUMBERS[:-1]}, "ward"]\npercent = 5',
    "swapping": 'columns = ["income", "ward"]\nshare = 0.8',
    "permutation": 'columns = ["income", "ward"]',
    "pram": 'columns = ["town", "ward"]\nkeep = 0.5',
}
# Only one of her sex, so that no class has her, and unlike all others in what is masked.
ALONE = "INSERT INTO public.staff VALUES (1000, 7, 40, 'x', 777777, -777777, 'nowhere', 'none')"
READ = "SELECT * FROM anon.staff ORDER BY ref"
FRESH = {"new_series": True, "recipients_changed": True}


@pytest.fixture
def staff(database):
    database.execute(
        "CREATE TABLE public.staff (id int PRIMARY KEY, ref int, age int, sex text, income int,"
        " bonus float8, town text, ward text);"
        "INSERT INTO public.staff SELECT i, 10 + i, 20 + i * 31 % 60, (ARRAY['f', 'm'])[1 + i % 2],"
        " 20000 + i * 373 % 9973, sqrt(i * 13 % 997), 't' || i * 7 % 9, 'w' || i * 11 % 13"
        " FROM generate_series(1, 200) AS i"
    )
    return database


def define(database, tmp_path, method):
    head, columns = POLICY.split("[columns]")
    file = tmp_path / "staff.toml"
    file.write_text(f'{head}[[masking]]\nmethod = "{method}"\n{STEPS[method]}\n[columns]{columns}')
    dbanon.set_policy(TABLE, file, settings=database.settings)


def test_every_method_is_tried():
    assert set(MASKING) == set(STEPS)


@pytest.mark.parametrize("method", exhaustive_after(1, STEPS))
def test_who_waits_and_who_is_left_out_change_no_published_value(staff, tmp_path, method):
    define(staff, tmp_path, method)
    dbanon.publish(TABLE, settings=staff.settings)
    without = staff.execute(READ)
    assert 200 == len(without)
    staff.execute(ALONE)
    dbanon.refresh(TABLE, settings=staff.settings)
    assert without == staff.execute(READ)
    release = dbanon.publish(TABLE, settings=staff.settings, **FRESH)
    assert (201, 1) == (release.loss.n_rows, release.loss.n_suppressed)
    assert without == staff.execute(READ)


@pytest.mark.exhaustive
@pytest.mark.parametrize("digits", ["0.123456789", "70.000", "900719925474099.1000000001"])
def test_the_digits_of_a_person_who_is_left_out_show_in_no_rounded_value(staff, tmp_path, digits):
    staff.execute(
        "ALTER TABLE public.staff ALTER bonus TYPE numeric"
        " USING CASE id % 5 WHEN 0 THEN 900719925474099.1 ELSE round(bonus::numeric, 1) END"
    )
    define(staff, tmp_path, "rounding")
    published = []
    for bonus in ("1", digits):
        staff.execute("DELETE FROM public.staff WHERE id = 1000")
        staff.execute(f"INSERT INTO public.staff VALUES (1000, 7, 40, 'x', 1, {bonus}, 'no', 'no')")
        release = dbanon.publish(TABLE, settings=staff.settings, **FRESH)
        assert 1 == release.loss.n_suppressed
        published.append(staff.execute("SELECT ref, bonus::text FROM anon.staff ORDER BY ref"))
    assert published[0] == published[1]
