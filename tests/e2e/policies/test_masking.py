"""Every masking method from the policy to what an analyst reads, and to the next refresh."""

from collections import Counter

import pytest
from selection import exhaustive_after
from tables import rows_proved

import dbanon
from dbanon.anonymization.registry import MASKING
from dbanon.cli import main
from dbanon.formats import policies

TABLE = "public.people"
ROWS = 300
POLICY = """
table = "public.people"
models = {k = 5, l = 2}
algorithm = "mondrian"
[columns]
id.role = "identifier"
ref.role = "insensitive"
age.role = "quasi"
sex.role = "quasi"
visits.role = "insensitive"
income.role = "sensitive"
height.role = "insensitive"
born.role = "insensitive"
seen.role = "insensitive"
region.role = "insensitive"
flat.role = "insensitive"
"""
# A method on columns of numbers, of dates, with NULLs, ties and no variation at all.
NUMBERS = '["visits", "income", "height", "born", "seen", "flat"]'
TOGETHER = '["visits", "height", "born", "seen", "flat"]'
STEPS = {
    "top-coding": f"columns = {NUMBERS}\npersons = 10",
    "bottom-coding": f'columns = {NUMBERS}\npersons = 10\nshown = "mean"',
    "rounding": f"columns = {NUMBERS}\nbase = 7",
    "discretization": f'columns = {NUMBERS}\nbins = 4\nby = "width"',
    "rare-to-other": 'columns = ["region"]\npersons = 10',
    "local-suppression": 'columns = ["region", "visits", "born"]\npersons = 3',
    "noise": f"columns = {NUMBERS}\nshare = 0.3",
    "correlated-noise": f"columns = {TOGETHER}\nshare = 0.3",
    "kim": f"columns = {TOGETHER}\nshare = 0.3\nexact = true",
    "sullivan": f"columns = {TOGETHER}\nshare = 0.3",
    "individual-ranking": f"columns = {NUMBERS}\nk = 3",
    "microaggregation": f"columns = {TOGETHER}\nk = 3\nrestore_variance = true",
    "rank-swapping": f"columns = {NUMBERS}\npercent = 5",
    "swapping": 'columns = ["region", "income"]\nwithin = ["sex"]\nshare = 0.5',
    "permutation": 'columns = ["region", "income"]',
    "pram": 'columns = ["region", "flat"]\nkeep = 0.8',
}
SAME_VALUES = """
    SELECT (SELECT array_agg({0} ORDER BY {0}) FROM anon.people)
         = (SELECT array_agg({0} ORDER BY {0}) FROM public.people)"""
# What holds of what an analyst reads, by method.
TRUE = {
    "top-coding": """
        SELECT bool_and(n >= 10 AND v.income = least(s.income, m)) FROM anon.people AS v
          JOIN public.people AS s USING (ref), (SELECT max(income) AS m FROM anon.people) AS t,
               (SELECT count(*) AS n FROM anon.people AS a
                 WHERE a.income = (SELECT max(income) FROM anon.people)) AS c
         WHERE s.income IS NOT NULL""",
    "bottom-coding": """
        SELECT abs((SELECT avg(born - date '1950-01-01') FROM anon.people)
                 - (SELECT avg(born - date '1950-01-01') FROM public.people)) < 1""",
    "rounding": """
        SELECT bool_and(visits % 7 = 0 AND income % 7 = 0 AND (born - date '1970-01-01') % 7 = 0)
          FROM anon.people""",
    "discretization": """
        SELECT count(DISTINCT visits) <= 4 AND count(DISTINCT born) = 4 AND max(flat) = 5
          FROM anon.people""",
    "rare-to-other": """
        SELECT min(n) >= 10 AND bool_or(region = 'other') AND NOT bool_or(region LIKE 'rare%')
          FROM (SELECT region, count(*) AS n FROM anon.people GROUP BY region) AS r
         WHERE region IS NOT NULL""",
    "local-suppression": """
        SELECT bool_and(n >= 3) FROM (
            SELECT count(*) AS n FROM anon.people WHERE region IS NOT NULL AND visits IS NOT NULL
             GROUP BY region, visits
             UNION ALL
            SELECT count(*) FROM anon.people WHERE born IS NOT NULL AND visits IS NOT NULL
             GROUP BY born, visits) AS pairs""",
    "noise": """
        SELECT corr(v.height, s.height) BETWEEN 0.8 AND 0.95 AND bool_and(v.flat = 5)
          FROM anon.people AS v JOIN public.people AS s USING (ref)""",
    "correlated-noise": """
        SELECT corr(v.height, s.height) BETWEEN 0.8 AND 0.95
          FROM anon.people AS v JOIN public.people AS s USING (ref)""",
    "kim": """
        SELECT abs((SELECT avg(height) FROM anon.people) - avg(height)) < 1e-6
           AND abs((SELECT stddev(height) FROM anon.people) - stddev(height)) < 1e-6
          FROM public.people""",
    "sullivan": SAME_VALUES.format("born"),
    "individual-ranking": """
        SELECT min(n) >= 3 FROM (SELECT count(*) AS n FROM anon.people GROUP BY height) AS h""",
    "microaggregation": """
        SELECT min(n) >= 3 FROM (
            SELECT count(*) AS n FROM anon.people
             GROUP BY visits, height, born, seen, flat) AS h""",
    "rank-swapping": SAME_VALUES.format("income"),
    "swapping": """
        SELECT NOT EXISTS (
            SELECT s.sex, v.region, v.income
              FROM anon.people AS v JOIN public.people AS s USING (ref)
            EXCEPT ALL SELECT sex, region, income FROM public.people)""",
    "permutation": """
        SELECT NOT EXISTS (
            SELECT v.age, v.sex, v.income FROM anon.people AS v
            EXCEPT ALL
            SELECT v.age, v.sex, s.income FROM anon.people AS v JOIN public.people AS s USING (ref))
        """,
    "pram": """
        SELECT avg((v.region = s.region)::int) BETWEEN 0.72 AND 0.88
           AND count(*) FILTER (WHERE (v.region IS NULL) <> (s.region IS NULL)) = 0
          FROM anon.people AS v JOIN public.people AS s USING (ref)""",
}
READ = "SELECT * FROM anon.people ORDER BY ref"
TYPES = """
    SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
     WHERE attrelid = '{}'::regclass AND attnum > 0 AND attname NOT IN ('id', 'age', 'sex')"""


@pytest.fixture
def people(database):
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, ref int NOT NULL, age int, sex text,"
        " visits smallint, income numeric(12, 2), height float8, born date, seen timestamptz,"
        " region varchar(10), flat int);"
        "INSERT INTO public.people SELECT i, i * 7919 % 104729, 20 + i * 31 % 60,"
        " (ARRAY['f', 'm'])[1 + i % 2], i * 17 % 23, CASE WHEN i % 9 > 0 THEN i * 37.25 % 977 END,"
        " 150 + sqrt(i * 13 % 997), date '1950-01-01' + i * 131 % 20000,"
        " timestamptz '2024-01-01' + i * 6151 % 900000 * interval '1 s',"
        " CASE WHEN i % 50 = 3 THEN 'rare ' || i WHEN i % 11 > 0 THEN 'r' || i % 4 END, 5"
        f" FROM generate_series(1, {ROWS}) AS i"
    )
    return database


def define(database, tmp_path, method, step, policy=POLICY):
    head, columns = policy.split("[columns]")
    file = tmp_path / "people.toml"
    file.write_text(f'{head}[[masking]]\nmethod = "{method}"\n{step}\n[columns]{columns}')
    dbanon.set_policy(TABLE, file, settings=database.settings)


def test_every_method_is_tried():
    assert set(MASKING) == set(STEPS) == set(TRUE)


@pytest.mark.parametrize("method", exhaustive_after(2, STEPS))
def test_masked_values_are_published_proved_and_stay(people, tmp_path, method):
    define(people, tmp_path, method, STEPS[method])
    reader = people.role("reader")
    release = dbanon.publish(TABLE, settings=people.settings, grants=[reader])
    assert rows_proved(release) == ROWS
    assert dbanon.check("anon.people", settings=people.settings).passed
    analyst = people.connect_as(reader)
    before = analyst.execute(READ).fetchall()
    ((different,),) = people.execute(
        "SELECT count(*) FROM anon.people AS a JOIN public.people AS s USING (ref)"
        " WHERE (a.visits, a.income, a.height, a.born, a.seen, a.region) IS DISTINCT FROM"
        "       (s.visits, s.income, s.height, s.born, s.seen, s.region)"
    )
    assert different > 0
    assert [(True,)] == people.execute(TRUE[method])
    shown = people.execute(TYPES.format("anon.people"))
    assert shown == people.execute(TYPES.format("public.people"))
    # Written again in another order, the rows are where they were not.
    people.execute("UPDATE public.people SET ref = ref WHERE id % 5 < 3")
    dbanon.publish(TABLE, settings=people.settings)
    assert before == analyst.execute(READ).fetchall()


def stays(database, column):
    """Return the value of a column that each row shows."""
    return dict(database.execute(f"SELECT ref, {column}::text FROM anon.people"))


@pytest.mark.exhaustive
def test_steps_are_stored_as_they_are_written(people, tmp_path):
    for method, step in STEPS.items():
        define(people, tmp_path, method, step)
        stored = dbanon.load_policy(TABLE, settings=people.settings)
        file = tmp_path / "people.toml"
        assert policies.parse(file.read_text()) == stored
        file.write_text(policies.dump(stored))
        assert policies.parse(file.read_text()) == stored


@pytest.mark.exhaustive
def test_who_was_shown_unmasked_is_masked_when_the_policy_says_so(people, tmp_path):
    """Else the values that were published of persons would go on being shown."""
    file = tmp_path / "people.toml"
    file.write_text(POLICY)
    dbanon.set_policy(TABLE, file, settings=people.settings)
    dbanon.publish(TABLE, settings=people.settings)
    before = stays(people, "income")
    define(people, tmp_path, "noise", 'columns = ["income"]\nshare = 0.5')
    with pytest.raises(dbanon.CheckFailed, match="taken together, releases"):
        dbanon.publish(TABLE, settings=people.settings)
    assert before == stays(people, "income")
    dbanon.publish(TABLE, new_series=True, recipients_changed=True, settings=people.settings)
    after = stays(people, "income")
    changed = [before[ref] != value for ref, value in after.items() if value is not None]
    assert sum(changed) > 250


@pytest.mark.exhaustive
@pytest.mark.parametrize("column", ["income", "height"])
def test_noise_of_who_stays_is_the_same_when_others_come_and_go(people, tmp_path, column):
    define(people, tmp_path, "noise", f'columns = ["{column}"]\nshare = 0.2')
    dbanon.publish(TABLE, settings=people.settings)
    before = stays(people, column)
    people.execute(
        "INSERT INTO public.people SELECT 1000 + id, 200000 + ref, age, sex, visits, income,"
        " height, born, seen, region, flat FROM public.people WHERE id <= 40;"
        "DELETE FROM public.people WHERE id % 60 = 7"
    )
    dbanon.refresh(TABLE, settings=people.settings)
    after = stays(people, column)
    same = [before[ref] == value for ref, value in after.items() if ref in before]
    assert all(same)
    assert len(same) > 250
    assert len(after) > len(same)
    assert dbanon.check("anon.people", settings=people.settings).passed


@pytest.mark.exhaustive
def test_methods_that_ask_all_rows_group_anew(people, tmp_path):
    define(people, tmp_path, "rank-swapping", STEPS["rank-swapping"])
    dbanon.publish(TABLE, settings=people.settings)
    before = stays(people, "income")
    people.execute("UPDATE public.people SET region = region || 'x' WHERE id < 9")
    (found,) = dbanon.refresh(TABLE, settings=people.settings)
    assert (True, None) == (found.changed, found.growth)
    assert before == stays(people, "income")


def test_classes_are_formed_of_masked_quasi_identifiers(people, tmp_path):
    define(people, tmp_path, "rounding", 'columns = ["age"]\nbase = 10')
    release = dbanon.publish(TABLE, settings=people.settings)
    assert rows_proved(release) == ROWS
    bounds = people.execute("SELECT DISTINCT lower(age) % 10, upper(age) % 10 FROM anon.people")
    assert {(0, 1)} == {*bounds}
    assert dbanon.check("anon.people", settings=people.settings).passed
    assert not dbanon.refresh(TABLE, settings=people.settings, if_changed=True)[0].changed


def test_rows_of_a_person_with_one_value_have_one_noise(people, tmp_path):
    people.execute(
        "ALTER TABLE public.people ADD person int; UPDATE public.people SET person = (id + 1) / 2;"
        "ALTER TABLE public.people ALTER person SET NOT NULL;"
        "UPDATE public.people SET height = 150 + person % 40"
    )
    policy = POLICY.replace("models =", 'subject = "person"\nmodels =')
    policy += 'person.role = "identifier"\n'
    define(people, tmp_path, "noise", 'columns = ["height"]\nshare = 0.2', policy)
    dbanon.publish(TABLE, settings=people.settings)
    found = people.execute(
        "SELECT max(n), count(DISTINCT shown) FROM (SELECT count(DISTINCT v.height) AS n,"
        " min(v.height - s.height) AS shown FROM anon.people AS v"
        " JOIN public.people AS s USING (ref) GROUP BY s.person) AS p"
    )
    ((distinct, noises),) = found
    assert distinct == 1
    assert noises > 20  # persons of one height differ


def test_a_tail_counts_persons(people, tmp_path):
    people.execute(
        "ALTER TABLE public.people ADD person int NOT NULL DEFAULT 0;"
        "UPDATE public.people SET person = CASE WHEN visits >= 20 THEN 0 ELSE id END"
    )
    policy = POLICY.replace("models =", 'subject = "person"\nmodels =')
    policy += 'person.role = "identifier"\n'
    define(people, tmp_path, "top-coding", 'columns = ["visits"]\npersons = 2', policy)
    dbanon.publish(TABLE, settings=people.settings)
    assert [(19,)] == people.execute("SELECT max(visits) FROM anon.people")


ORDERED = (
    POLICY
    + """
grade.role = "insensitive"
stage.role = "sensitive"
stage.order = ["mild", "fair", "bad", "worst"]
"""
)


@pytest.fixture
def ordered(people):
    """Of the last grade are 8 rows, of the one before 2; of the last stage 10."""
    people.execute(
        "CREATE TYPE public.grade AS ENUM ('none', 'low', 'high', 'extreme');"
        "ALTER TABLE public.people ADD grade public.grade, ADD stage text;"
        "UPDATE public.people SET grade = (CASE WHEN id <= 8 THEN 'extreme' WHEN id <= 10"
        " THEN 'high' WHEN id % 20 = 0 THEN NULL WHEN id % 2 = 0 THEN 'low' ELSE 'none'"
        " END)::public.grade, stage = (ARRAY['mild', 'fair', 'bad', 'worst'])[1 +"
        " CASE WHEN id % 30 = 1 THEN 3 ELSE id % 3 END]"
    )
    return people


def pairs_of(database, column):
    """Return the value of each row in the source, the published one, and their number."""
    return {
        (before, after): number
        for before, after, number in database.execute(
            f"SELECT s.{column}::text, v.{column}::text, count(*)::int FROM anon.people AS v"
            f" JOIN public.people AS s USING (ref) GROUP BY s.{column}, v.{column}"
        )
    }


def test_tails_of_values_in_an_order_are_coded_by_rank(ordered, tmp_path):
    step = 'columns = ["grade", "stage"]\npersons = 10'
    define(ordered, tmp_path, "top-coding", step, ORDERED)
    assert rows_proved(dbanon.publish(TABLE, settings=ordered.settings)) == ROWS
    grades = {pair: n for pair, n in pairs_of(ordered, "grade").items() if len({*pair}) > 1}
    assert {("extreme", "high"): 8} == grades
    assert all(before == after for before, after in pairs_of(ordered, "stage"))
    define(ordered, tmp_path, "bottom-coding", step.replace("10", "110"), ORDERED)
    dbanon.publish(TABLE, new_series=True, recipients_changed=True, settings=ordered.settings)
    changed = {pair for pair in pairs_of(ordered, "stage") if len({*pair}) > 1}
    assert {("mild", "fair")} == changed


@pytest.mark.parametrize("method", ["individual-ranking", "microaggregation"])
def test_values_in_an_order_become_the_median_of_their_group(ordered, tmp_path, method):
    define(ordered, tmp_path, method, 'columns = ["grade"]\nk = 5', ORDERED)
    assert rows_proved(dbanon.publish(TABLE, settings=ordered.settings)) == ROWS
    pairs = pairs_of(ordered, "grade")
    shown = Counter()
    for (_, after), number in pairs.items():
        shown[after] += number
    assert {"none", "low", "extreme", None} == {*shown}  # two rows of a group are no median
    assert min(shown.values()) >= 5
    assert (None, None) in pairs
    assert not any((before is None) != (after is None) for before, after in pairs)


def test_values_that_the_order_lacks_are_counted(ordered, tmp_path):
    ordered.execute("UPDATE public.people SET stage = 'unheard of' WHERE id = 7")
    define(ordered, tmp_path, "top-coding", 'columns = ["stage"]\npersons = 5', ORDERED)
    with pytest.raises(dbanon.PolicyError, match=r"1 values .*missing from its order"):
        dbanon.publish(TABLE, settings=ordered.settings)


@pytest.mark.parametrize(
    ("method", "step", "message"),
    [
        ("top-coding", 'columns = ["grade"]\npersons = 5\nat = 0', "at is for numbers"),
        ("top-coding", 'columns = ["grade"]\npersons = 5\nshown = "mean"', "shown is for numbers"),
        (
            "microaggregation",
            'columns = ["grade"]\nk = 5\nrestore_variance = true',
            "restore_variance is for numbers",
        ),
        ("top-coding", 'columns = ["region"]\npersons = 5', "values in an order"),
        ("rounding", 'columns = ["grade"]\nbase = 2', "needs numbers, dates or times"),
    ],
)
def test_what_only_numbers_have_is_refused_of_an_order(ordered, tmp_path, method, step, message):
    with pytest.raises(dbanon.PolicyError, match=message):
        define(ordered, tmp_path, method, step, ORDERED)


def test_ranks_of_a_listed_order_are_swapped(ordered, tmp_path):
    define(ordered, tmp_path, "rank-swapping", 'columns = ["stage"]\npercent = 5', ORDERED)
    dbanon.publish(TABLE, settings=ordered.settings)
    order = ["mild", "fair", "bad", "worst"]
    pairs = [[order.index(value) for value in pair] for pair in pairs_of(ordered, "stage")]
    assert {0, 1} == {abs(before - after) for before, after in pairs}


@pytest.mark.exhaustive
def test_other_parameters_draw_other_noise(people, tmp_path):
    shown = []
    for share in ("0.2", "0.4"):
        define(people, tmp_path, "noise", f'columns = ["height"]\nshare = {share}')
        name, others = f"by{share[-1]}", {"new_series": True, "recipients_changed": True}
        dbanon.publish(TABLE, name=name, settings=people.settings, **others)
        shown.append(f"anon.by{share[-1]}")
    ((correlated,),) = people.execute(
        "SELECT corr(a.height - s.height, b.height - s.height) FROM public.people AS s"
        f" JOIN {shown[0]} AS a USING (ref) JOIN {shown[1]} AS b USING (ref)"
    )
    assert abs(correlated) < 0.2


@pytest.mark.exhaustive
def test_permutation_needs_no_sensitive_column(people, tmp_path):
    policy = POLICY.replace(", l = 2", "").replace('"sensitive"', '"insensitive"')
    define(people, tmp_path, "permutation", STEPS["permutation"], policy)
    dbanon.plan(TABLE, settings=people.settings)
    release = dbanon.publish(TABLE, settings=people.settings)
    assert rows_proved(release) == ROWS
    assert [(True,)] == people.execute(TRUE["permutation"])
    ((different,),) = people.execute(
        "SELECT count(*) FROM anon.people AS a JOIN public.people AS s USING (ref)"
        " WHERE (a.income, a.region) IS DISTINCT FROM (s.income, s.region)"
    )
    assert different > 200


def test_plan_fails_where_publish_would_mask_within_classes_in_vain(people, tmp_path, monkeypatch):
    def fail(*_):
        raise dbanon.PolicyError("no order for these")

    monkeypatch.setattr("dbanon.anonymization.masking.categories.Permutation.mask", fail)
    define(people, tmp_path, "permutation", STEPS["permutation"])
    for command in (dbanon.publish, dbanon.plan):
        with pytest.raises(dbanon.PolicyError, match="no order for these"):
            command(TABLE, settings=people.settings)


@pytest.mark.parametrize(
    ("method", "step"),
    [
        ("sullivan", 'columns = ["height"]\nshare = 0.3'),
        ("top-coding", 'columns = ["height"]\npersons = 30'),
    ],
)
@pytest.mark.parametrize("of", ["float8", "numeric"])
def test_values_of_the_column_keep_all_their_digits(people, tmp_path, method, step, of):
    """Else the digits show which rows have their own value."""
    people.execute(
        f"ALTER TABLE public.people ALTER height TYPE {of}"
        " USING (150::float8 + sqrt(id * 13 % 997))::text::numeric + 1e-13"
    )
    define(people, tmp_path, method, step)
    dbanon.publish(TABLE, settings=people.settings)
    source = set(people.execute("SELECT height::text FROM public.people"))
    shown = set(people.execute("SELECT height::text FROM anon.people"))
    assert shown - source == set()
    assert any(len(text) > 15 for (text,) in shown)


def test_noise_stays_within_the_type(people, tmp_path):
    people.execute(
        "ALTER TABLE public.people ALTER income TYPE numeric(3, 1) USING 90 + id % 10 * 0.9"
    )
    define(people, tmp_path, "noise", 'columns = ["income"]\nshare = 0.5')
    dbanon.publish(TABLE, settings=people.settings)
    assert [(99.9,)] == people.execute("SELECT max(income)::float8 FROM anon.people")


@pytest.mark.parametrize(
    ("change", "step", "message"),
    [
        ("height = 'NaN'", ("noise", 'columns = ["height"]\nshare = 0.1'), "noise cannot mask"),
        ("born = 'infinity'", ("kim", 'columns = ["born"]\nshare = 0.1'), "kim cannot mask"),
        ("seen = '-infinity'", ("top-coding", 'columns = ["seen"]\npersons = 5'), "cannot mask"),
        (
            "visits = NULL",
            ("microaggregation", 'columns = ["visits", "height"]\nk = 5'),
            "1 rows have NULL in some",
        ),
    ],
)
def test_values_that_a_method_cannot_mask_are_counted(people, tmp_path, change, step, message):
    people.execute(f"UPDATE public.people SET {change} WHERE id = 7")
    define(people, tmp_path, *step)
    with pytest.raises(dbanon.PolicyError, match=message):
        dbanon.publish(TABLE, settings=people.settings)
    assert [(None,)] == people.execute("SELECT to_regclass('anon.people')")


@pytest.mark.parametrize("of", ["int8", "numeric"])
def test_numbers_of_more_whole_digits_than_a_float_holds_are_refused(people, tmp_path, of):
    """As floats they are rounded before they are masked, or are all one and stay as they are."""
    people.execute(f"ALTER TABLE public.people ALTER visits TYPE {of}")
    people.execute("UPDATE public.people SET visits = 4611686018427387905 WHERE id = 7")
    define(people, tmp_path, "rounding", 'columns = ["visits"]\nbase = 5')
    with pytest.raises(dbanon.PolicyError, match="visits has 1 values that rounding cannot mask"):
        dbanon.publish(TABLE, settings=people.settings)


@pytest.mark.parametrize(
    ("method", "step", "message"),
    [
        ("blur", 'columns = ["height"]', "is none of"),
        ("noise", 'columns = ["height"]', "noise needs share"),
        ("noise", 'columns = ["height"]\nshare = 0', "more than 0"),
        ("noise", 'columns = ["height"]\nshare = "much"', "is a number"),
        ("noise", 'columns = ["height"]\nshare = 1\nloud = true', "no parameter of noise 'loud'"),
        ("noise", 'columns = ["region"]\nshare = 0.1', "needs numbers, dates or times"),
        ("noise", 'columns = ["heigth"]\nshare = 0.1', "did you mean height"),
        ("noise", 'columns = ["id"]\nshare = 0.1', "it is not published"),
        ("noise", 'columns = ["height", "height"]\nshare = 0.1', "more than once"),
        ("top-coding", 'columns = ["born"]\npersons = 5\nat = 3', "leave it out for dates"),
        ("rare-to-other", 'columns = ["visits"]\npersons = 5', "needs texts"),
        (
            "rare-to-other",
            'columns = ["region"]\npersons = 5\nlabel = "all the others"',
            "no room for the label 'all the others'",
        ),
        ("swapping", 'columns = ["region"]\nshare = 1\nwithin = ["region"]', "which is masked"),
        ("swapping", 'columns = ["region"]\nshare = 2', "at most 1"),
        ("permutation", 'columns = ["sex"]', "in which quasi-identifiers are alike"),
        ("permutation", 'columns = ["flat"]\nwithin = ["sex"]', "quasi-identifiers are alike"),
    ],
)
def test_steps_that_make_no_sense_are_refused(people, tmp_path, method, step, message):
    with pytest.raises(dbanon.PolicyError, match=message):
        define(people, tmp_path, method, step)


def test_a_live_view_shows_values_as_they_are(people, tmp_path):
    define(people, tmp_path, "noise", STEPS["noise"])
    with pytest.raises(dbanon.ConfigError, match="masks some"):
        dbanon.publish(TABLE, kind="view", settings=people.settings)


def test_readers_and_stewards_are_told(people, tmp_path, monkeypatch, capsys):
    define(people, tmp_path, "pram", STEPS["pram"])
    monkeypatch.setattr("sys.argv", ["dbanon", "policy", "show", TABLE])
    monkeypatch.setenv("DBANON_DSN", people.dsn)
    with pytest.raises(SystemExit):
        main()
    assert "masked: region, flat by pram (keep 0.8)" in capsys.readouterr().out
    release = dbanon.publish(TABLE, settings=people.settings)
    assert {("masked", "region"), ("masked", "flat")} == {
        (str(caution.code), caution.column)
        for caution in release.warnings
        if caution.code == "masked"
    }
    described = {
        c.name: c.words for c in dbanon.describe("anon.people", settings=people.settings).columns
    }
    assert described["region"].startswith(
        "published as it is once masked; masked by pram (keep 0.8): values stay"
    )
    with pytest.raises(dbanon.PolicyError, match=r"\[masked\]"):
        dbanon.publish(TABLE, strict=True, settings=people.settings)


def test_quasi_identifiers_in_an_order_are_masked_by_rank_and_then_grouped(ordered, tmp_path):
    policy = ORDERED.replace('stage.role = "sensitive"', 'stage.role = "quasi"')
    policy = policy.replace('grade.role = "insensitive"', 'grade.role = "quasi"')
    step = 'columns = ["grade", "stage"]\npersons = 12'
    define(ordered, tmp_path, "top-coding", step, policy)
    assert rows_proved(dbanon.publish(TABLE, settings=ordered.settings)) == ROWS
    shown = ordered.execute("SELECT DISTINCT unnest(ARRAY[grade::text, stage]) FROM anon.people")
    assert not any("extreme" in text or "worst" in text for (text,) in shown if text is not None)
