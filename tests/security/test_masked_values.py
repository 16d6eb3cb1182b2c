"""Whoever reads masked values wants those of the source back."""

import pytest
from selection import each_once

import dbanon

POLICY = """
table = "public.people"
models = {{k = 5}}
algorithm = "mondrian"
{steps}
[columns]
id.role = "identifier"
ref.role = "insensitive"
age.role = "quasi"
town.role = "insensitive"
visits.role = "insensitive"
income.role = "{role}"
height.role = "insensitive"
diagnosis.role = "insensitive"
"""
PEOPLE = """
    CREATE TABLE public.people (id int PRIMARY KEY, ref int NOT NULL, age int, town int, visits int,
                                income numeric, height float8, diagnosis text);
    INSERT INTO public.people
    SELECT i, i, 20 + i * 31 % 60, i % 4, i * 17 % 23, (i * 3725 % 97700)::numeric / 100,
           150 + sqrt(i * 13 % 997), 'd' || i * i % 30
      FROM generate_series(1, 300) AS i"""
# How many values of the source are shown in the row in which they were.
SHOWN = """
    SELECT count(*) FROM {} AS a JOIN public.people AS s USING (ref)
     WHERE a.{column} = s.{column} AND {of}"""


@pytest.fixture
def people(database):
    database.execute(PEOPLE)
    return database


def publish(database, tmp_path, steps, *, name="people", role="insensitive"):
    file = tmp_path / "people.toml"
    text = "".join(f"[[masking]]\n{step}\n" for step in steps)
    file.write_text(POLICY.format(steps=text, role=role))
    dbanon.set_policy("public.people", file, settings=database.settings)
    dbanon.publish(
        "public.people",
        name=name,
        new_series=True,
        recipients_changed=True,
        settings=database.settings,
    )
    return f"anon.{name}"


METHODS = [
    'method = "top-coding"\npersons = 5',
    'method = "bottom-coding"\npersons = 5\nshown = "mean"',
    'method = "microaggregation"\nk = 5',
    'method = "individual-ranking"\nk = 5',
    'method = "noise"\nshare = 0.5',
    'method = "kim"\nshare = 0.5',
    'method = "sullivan"\nshare = 0.5',
    'method = "discretization"\nbins = 5',
]


@pytest.mark.parametrize(("step", "role"), each_once(METHODS, ["insensitive", "sensitive"]))
def test_the_only_one_of_a_part_is_not_shown(people, tmp_path, step, role):
    """Nothing varies among one, one is no tail, and the mean of one is the value."""
    people.execute(
        "UPDATE public.people SET town = 99 WHERE id = 7;"
        "UPDATE public.people SET income = NULL WHERE town = 2 AND id > 2"
    )
    found = publish(
        people, tmp_path, [f'{step}\ncolumns = ["income"]\nwithin = ["town"]'], role=role
    )
    alone = SHOWN.format(found, column="income", of="s.id IN (2, 7)")
    assert [(0,)] == people.execute(alone)
    assert [(74 + 75 + 75,)] == people.execute(f"SELECT count(income) FROM {found}")


def heights(database, relation):
    return dict(database.execute(f"SELECT ref, height FROM {relation}"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["noise", "correlated-noise"])
def test_who_knows_one_value_does_not_solve_for_the_others(people, tmp_path, method):
    """Of y = x + s z and y' = x + s' z, with s'/s from the one value that is known."""
    step = f'method = "{method}"\nshare = 0.5\ncolumns = ["height"]'
    relation = publish(people, tmp_path, [step])
    source, first = heights(people, "public.people"), heights(people, relation)
    people.execute("UPDATE public.people SET height = height * 1.02 WHERE id > 250")
    dbanon.refresh("public.people", settings=people.settings)
    second = heights(people, relation)
    known, ratios = 7, [1.0]
    if first[known] != second[known]:
        ratios = [(first[known] - source[known]) / (second[known] - source[known])]
    for ratio in ratios:
        solved = [
            abs((first[ref] - ratio * second[ref]) / (1 - ratio) - source[ref]) < 1e-3
            for ref in range(8, 250)
            if ratio != 1.0
        ]
        assert sum(solved) < 3
    assert all(abs(first[ref] - source[ref]) > 0 for ref in source)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("role", "columns"), [("insensitive", ["income"]), ("sensitive", ["income", "height"])]
)
def test_noise_is_not_averaged_over_roles_and_steps(people, tmp_path, role, columns):
    """A number is read with or without zeros at its end by its role; it is the same number."""
    people.execute("UPDATE public.people SET income = income::numeric(12, 3)")
    step = 'method = "noise"\nshare = 0.5\ncolumns = '
    one = publish(people, tmp_path, [f'{step}["income"]'], role=role)
    two = publish(people, tmp_path, [f"{step}{columns}"], name="other", role="sensitive")
    ((different,),) = people.execute(
        f"SELECT count(*) FROM {one} AS a JOIN {two} AS b USING (ref)"
        " WHERE abs(a.income - b.income) > 0.01"
    )
    assert different == 0


@pytest.mark.exhaustive
def test_swapped_rows_do_not_show_themselves_by_changing(people, tmp_path):
    """Who sees which values change knows which rows are swapped, and that all others are not."""
    step = 'method = "swapping"\nshare = 0.3\ncolumns = ["diagnosis"]'
    relation = publish(people, tmp_path, [step])
    read = f"SELECT ref, diagnosis FROM {relation}"
    before = dict(people.execute(read))
    source = dict(people.execute("SELECT ref, diagnosis FROM public.people"))
    assert 50 < sum(before[ref] != source[ref] for ref in before)
    for id_ in range(1001, 1004):
        people.execute(
            f"INSERT INTO public.people SELECT {id_}, {id_}, age, town, visits, income, height,"
            " diagnosis FROM public.people WHERE id = 9"
        )
        dbanon.refresh("public.people", settings=people.settings)
    after = dict(people.execute(read))
    assert sum(before[ref] != after[ref] for ref in before if ref in after) < 25
    assert len(after) > 280


@pytest.mark.exhaustive
def test_values_that_come_and_go_do_not_show_what_pram_keeps(people, tmp_path):
    """Else most of the values of many releases are the true one."""
    step = 'method = "pram"\nkeep = 0.4\ncolumns = ["diagnosis"]'
    relation = publish(people, tmp_path, [step])
    read = f"SELECT ref, diagnosis FROM {relation}"
    shown = [dict(people.execute(read))]
    source = dict(people.execute("SELECT ref, diagnosis FROM public.people"))
    for number in range(4):
        people.execute(
            f"INSERT INTO public.people SELECT 1000 * {number + 1} + i, 1000 * {number + 1} + i,"
            f" 40, 1, 1, 1, 160, 'new {number}' FROM generate_series(1, 5) AS i"
        )
        dbanon.refresh("public.people", settings=people.settings)
        shown.append(dict(people.execute(read)))
    stay = range(5, 300)
    first = sum(shown[0][ref] == source[ref] for ref in stay)
    often = sum(sum(one[ref] == source[ref] for one in shown) > 2 for ref in stay)
    assert 80 < first < 160
    assert abs(often - first) < 15
    assert (
        sum(len({one[ref] for one in shown}) == 1 for ref in stay) > 180
    )  # of about 227, and of 3 if all were drawn anew
