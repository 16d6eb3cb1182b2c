"""Made-up values from the policy to what a reader gets."""

import re
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import ClassVar

import pytest
from data.schemas.clinic import POLICIES, TABLES, make_clinic
from selection import exhaustive_after
from tables import make_patients

import dbanon
from dbanon.db.releases import replacements
from dbanon.domain.errors import ConfigError, PolicyError
from dbanon.domain.release import CheckFailed
from dbanon.formats import policies
from dbanon.formats.datasets import dataset_of

KINDS = (
    "name", "first_name", "last_name", "city", "street", "company", "user_name", "email", "phone",
    "iban", "code:??-####",
)  # fmt: skip
DOCUMENT = """
table = "public.patients"
locale = "de_DE"
allow = ["pseudonym: a copy for tests"]
[models]
k-anonymity.k = 5
[columns]
id.role = "identifier"
age.role = "quasi"
sex.role = "quasi"
born.role = "identifier"
weight.role = "identifier"
disease.role = "sensitive"
note.role = "identifier"
"""


def column(kind):
    return kind.partition(":")[0]


class Repeating:
    """A library of words that draws each kind once a run, as that takes most of a publication."""

    drawn: ClassVar[dict] = {}

    def __init__(self, locale, create):
        self.locale, self.library = locale, create(locale)

    def __getattr__(self, part):
        key = (self.locale, part)
        if key not in self.drawn:
            draw = getattr(self.library, part)
            self.drawn[key] = cycle([draw() for _ in range(10_247)])  # no multiple of 2 and 3
        return partial(next, self.drawn[key])


@pytest.fixture(autouse=True)
def words_once(monkeypatch):
    from faker.factory import Factory

    monkeypatch.setattr(Factory, "create", partial(Repeating, create=Factory.create))


@pytest.fixture
def patients(database):
    table = make_patients(database)
    columns = "".join(f", ADD {column(kind)} text" for kind in KINDS)
    database.execute(f"ALTER TABLE public.patients {columns[2:]}")
    values = ", ".join(f"{column(kind)} = 'Canary {column(kind)} ' || id" for kind in KINDS)
    database.execute(f"UPDATE public.patients SET {values}")
    rules = "".join(
        f'{column(kind)} = {{ role = "identifier", replace = "{kind}" }}\n' for kind in KINDS
    )
    dbanon.set_policy(table, policies.parse(DOCUMENT + rules), settings=database.settings)
    return database


def published(database, names, relation="anon.patients"):
    return database.execute(f"SELECT {names} FROM {relation}")


@pytest.mark.exhaustive
def test_each_kind_has_its_form(patients):
    release = dbanon.publish("patients", settings=patients.settings)
    row = published(patients, ", ".join(map(column, KINDS)))[0]
    assert release.checks.passed
    forms = (
        r"\S+ \S.*", r"\S.*", r"\S.*", r"\S.*", r"\D+ \d.*", r"\S.*",
        r"[a-z]+\.[a-z]+\.[0-9a-f]{10}", r"[a-z]+\.[a-z]+\.[0-9a-f]{10}@example\.org",
        r"\+999 \d{3} \d{3} \d{6}",
        r"DE\d{20}", r"[A-Z]{2}-\d{4}",
    )  # fmt: skip
    for kind, value, form in zip(KINDS, row, forms, strict=True):
        assert re.fullmatch(form, value), (kind, value)


@pytest.mark.exhaustive
def test_the_name_and_the_addresses_of_a_person_have_its_first_and_last_name(patients):
    dbanon.publish("patients", settings=patients.settings)
    names = "name, first_name, last_name, user_name, email"
    for name, first, last, user_name, email in published(patients, names):
        assert name == f"{first} {last}"
        plain = [replacements.spell(one) for one in (first, last)]
        assert user_name.split(".")[:2] == email.split(".")[:2] == plain


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("Zo\u00eb-Ann", "zoeann"),
        ("Wei\u00dfm\u00fcller", "weissmuller"),
        ("\u5c71\u7530", "user"),
        ("x" * 40, "x" * 20),
    ],
)
def test_addresses_spell_names_in_at_most_20_letters_from_a_to_z(name, address):
    assert address == replacements.spell(name)


@pytest.mark.exhaustive
def test_a_person_has_values_of_its_own_that_two_tables_and_refreshes_repeat(patients):
    dbanon.publish("patients", settings=patients.settings)
    names = "name, email, phone, iban, age, sex"
    first = sorted(published(patients, names))
    assert len({row[1] for row in first}) == len(first) == 200
    for i in range(3):
        patients.execute(f"UPDATE public.patients SET note = 'new {i}' WHERE id = {i}")
        dbanon.refresh("patients", settings=patients.settings)
        assert first == sorted(published(patients, names))
    dbanon.publish("patients", name="larger", k=10, settings=patients.settings)
    persons = {row[:4] for row in first}
    assert {row[:4] for row in published(patients, names, "anon.larger")} <= persons


@pytest.mark.exhaustive
def test_no_real_value_reaches_readers_or_metadata(patients):
    dbanon.publish("patients", settings=patients.settings)
    dbanon.refresh("patients", settings=patients.settings)
    tables = patients.execute(
        "SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relkind IN ('r', 'v')"
        " AND c.relnamespace IN ('anon'::regnamespace, 'dbanon'::regnamespace,"
        " 'dbanon_data'::regnamespace)"
    )
    comments = patients.execute(  # a language of a collation is that of the Canary Islands
        "SELECT description FROM pg_description WHERE classoid <> 'pg_collation'::regclass"
    )
    texts = [str(row) for row in comments]
    texts += [str(row) for (one,) in tables for row in patients.execute(f"SELECT t FROM {one} t")]
    assert not [text for text in texts if "Canary" in text]


@pytest.mark.exhaustive
def test_a_value_of_the_table_is_never_drawn_and_refused_when_it_comes_later(patients):
    dbanon.publish("patients", settings=patients.settings)
    ((name, city),) = patients.execute("SELECT name, city FROM anon.patients LIMIT 1")
    patients.execute(
        "INSERT INTO public.patients (id, age, sex, disease, name)"
        " SELECT id + 1000, age, sex, disease, %s FROM public.patients",
        (f" {name.upper()}",),
    )
    with pytest.raises(CheckFailed, match="1 replacements of column name are values of the table"):
        dbanon.refresh("patients", settings=patients.settings)
    assert [(name, city)] == published(patients, "name, city", "anon.patients LIMIT 1")
    again = {"new_series": True, "recipients_changed": True}
    dbanon.publish("patients", name="others", **again, settings=patients.settings)
    assert (name,) not in published(patients, "name", "anon.others")


@pytest.mark.exhaustive
def test_a_refresh_that_only_withdraws_classes_compares_no_values(patients):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    dbanon.set_policy(policy.table, replace(policy, erase_within="1d"), settings=patients.settings)
    dbanon.publish("patients", settings=patients.settings)
    patients.execute("DELETE FROM public.patients WHERE id = 5")
    dbanon.refresh("patients", settings=patients.settings)
    patients.execute("UPDATE dbanon.history_leaver SET missed_at = missed_at - interval '3 days'")
    ((name,),) = patients.execute("SELECT name FROM anon.patients LIMIT 1")
    patients.execute("UPDATE public.patients SET name = %s WHERE id = 9", (name,))
    (found,) = dbanon.refresh("patients", settings=patients.settings)
    assert (True, 0) == (found.changed, found.growth.inserted)
    assert found.growth.withdrawn > 0


class Numbered:
    """A library of words with a letter that has other cases and is written in two ways."""

    def __init__(self, _locale):
        self.n = 0

    def last_name(self):
        self.n += 1
        return f"\u00c5berg{self.n}"


@pytest.mark.parametrize("locale", exhaustive_after(1, [None, "C"]))
def test_words_are_compared_whatever_the_locale_and_spelling(server, monkeypatch, locale):
    monkeypatch.setattr("faker.factory.Factory.create", Numbered)
    with server.database(locale=locale) as database:
        dbanon.init(database.settings)
        make_patients(database)
        database.execute("ALTER TABLE public.patients ADD last_name text")
        names = ["\u00c5berg#", " \u00c5berg# ", "A\u030aberg#", "\u00c5BERG#", "\u00e5berg#"]
        cases = database.execute(
            "SELECT datctype NOT IN ('C', 'POSIX') OR EXISTS (SELECT FROM pg_collation"
            " WHERE collname IN ('und-x-icu', 'pg_c_utf8')) FROM pg_database"
            " WHERE datname = current_database()"
        )
        names = names if cases == [(True,)] else names[:3]
        for i, name in enumerate(names):
            database.execute(
                "UPDATE public.patients SET last_name = replace(%s, '#', id::text)"
                " WHERE id %% %s = %s",
                (name, len(names), i),
            )
        rule = 'last_name = { role = "identifier", replace = "last_name" }\n'
        policy = policies.parse(DOCUMENT + rule)
        dbanon.set_policy(policy.table, policy, settings=database.settings)
        release = dbanon.publish("patients", settings=database.settings)
        assert release.checks.passed
        real = {f"\u00c5berg{i}" for (i,) in database.execute("SELECT id FROM public.patients")}
        assert len(real) == 200
        words = database.execute("SELECT jsonb_array_elements_text(words) FROM dbanon.replacement")
        assert len(words) == 2 * 8192  # and how e-mail addresses spell them
        assert not real & {word for (word,) in words}


@pytest.mark.parametrize("of_column", exhaustive_after(1, ['text COLLATE "C"', "name"]))
def test_a_value_is_found_whatever_the_collation_of_its_column(patients, monkeypatch, of_column):
    patients.execute(
        f"ALTER TABLE public.patients ALTER city TYPE {of_column}, ALTER email TYPE {of_column}"
    )
    words = [f"\u00c4gidienstadt {i}" for i in range(replacements.N_WORDS)]
    monkeypatch.setattr(replacements, "_draw", lambda *_, **__: words + words)
    dbanon.publish("patients", settings=patients.settings)
    for column in ("city", "email"):
        ((made_up,),) = published(patients, column, "anon.patients LIMIT 1")
        patients.execute(f"UPDATE public.patients SET {column} = %s WHERE id = 1", (made_up,))
        with pytest.raises(CheckFailed, match=f"1 replacements of column {column} are values"):
            dbanon.publish("patients", name="others", settings=patients.settings)
        patients.execute(f"UPDATE public.patients SET {column} = 'Canary' WHERE id = 1")


@pytest.mark.exhaustive
def test_a_pattern_may_begin_with_digits(patients):
    digits = 'city = { role = "identifier", replace = "code:######" }\n'
    digits += 'street = { role = "identifier", replace = "code:#" }\n'
    policy = policies.parse(f'rest = "drop"\n{DOCUMENT}{digits}')
    dbanon.set_policy(policy.table, policy, settings=patients.settings)
    dbanon.publish("patients", settings=patients.settings)
    ((city, street),) = published(patients, "city, street", "anon.patients LIMIT 1")
    assert re.fullmatch(r"\d{6}", city)
    assert re.fullmatch(r"\d", street)


def test_a_pattern_with_too_few_codes_is_refused_by_counting(patients):
    patients.execute("UPDATE public.patients SET city = to_char(id, 'FM0000')")
    for pattern, is_refused in (("####", True), ("#" * 10, False), ("X####", False)):
        rule = f'city = {{ role = "identifier", replace = "code:{pattern}" }}\n'
        policy = policies.parse(f'rest = "drop"\n{DOCUMENT}{rule}')
        dbanon.set_policy(policy.table, policy, settings=patients.settings)
        publish = partial(dbanon.publish, "patients", name=f"p{len(pattern)}{is_refused}")
        if not is_refused:
            publish(settings=patients.settings)
            continue
        for _ in range(3):
            with pytest.raises(PolicyError, match="has 10,000 codes, and 200 values") as caught:
                publish(settings=patients.settings)
            assert "200 rows need 4,000,000" in str(caught.value)


@pytest.mark.parametrize("pattern", [" ", "   ", " #", "# ", ""])
def test_a_pattern_of_blanks_or_with_blanks_at_its_ends_is_refused(pattern):
    rule = f'city = {{ role = "identifier", replace = "code:{pattern}" }}\n'
    with pytest.raises(PolicyError, match="replace"):
        policies.parse(DOCUMENT + rule)


@pytest.mark.parametrize(
    "damage",
    exhaustive_after(
        1,
        [
            "DELETE FROM dbanon.replacement WHERE kind LIKE 'last_name%'",
            "UPDATE dbanon.replacement SET words = '[]' WHERE kind LIKE 'city%'",
            "UPDATE dbanon.replacement SET words = '{\"a\": 1}' WHERE kind LIKE 'city%'",
            "UPDATE dbanon.replacement SET words = replace(words::text, ', ', ', null, ')::jsonb",
        ],
    ),
)
def test_damaged_words_publish_nothing_and_are_named(patients, monkeypatch, damage):
    dbanon.publish("patients", settings=patients.settings)
    monkeypatch.setattr(replacements, "_draw", lambda *_, **__: [])
    patients.execute(damage)
    with pytest.raises(CheckFailed, match=r"the words in dbanon\.replacement are damaged"):
        dbanon.publish("patients", name="others", settings=patients.settings)
    assert published(patients, "count(*) FILTER (WHERE city IS NULL)") == [(0,)]


@pytest.mark.exhaustive
def test_readers_of_another_series_get_other_values(patients):
    again = {"new_series": True, "recipients_changed": True}
    dbanon.publish("patients", settings=patients.settings)
    dbanon.publish("patients", name="others", **again, settings=patients.settings)
    first, second = ({*published(patients, "email", f"anon.{n}")} for n in ("patients", "others"))
    assert not first & second


def test_a_person_has_one_name_in_three_tables_and_after_two_refreshes(database, tmp_path):
    make_clinic(database, tmp_path)
    for table, document in POLICIES.items():
        grouped = "" if table == "persons" else 'rows_per_subject = "group"\n'
        policy = policies.parse(f'{grouped}pseudonym = "person"\n{document}')
        database.execute(f"ALTER TABLE public.{table} ADD COLUMN note text")
        policy = replace(policy, columns=(*policy.columns, NOTE))
        dbanon.set_policy(policy.table, policy, settings=database.settings)
    dbanon.publish_dataset(dataset_of(TABLES), k=5, settings=database.settings)
    union = " UNION ".join(f"SELECT person, note FROM anon.{table}" for table in POLICIES)
    names = dict(database.execute(union))
    assert len(database.execute(union)) == len(names) > 100
    for i in (1, 2):
        database.execute(COPY.format(i))
        dbanon.refresh("persons", settings=database.settings)
        found = database.execute(union)
        assert len(found) == len({person for person, _ in found}) > len(names)
        assert names.items() <= {*found}
        names = dict(found)


COPY = """
INSERT INTO public.persons
SELECT person_id + {0} * 1000, first_name, last_name, '{0}' || ssn, birth_date, death_date, sex,
       race, marital_status, street, city, zip
  FROM public.persons
 WHERE person_id <= 400;
INSERT INTO public.encounters
SELECT encounter_id + {0} * 100000, person_id + {0} * 1000, started, ended, encounter_class,
       total_cost
  FROM public.encounters
 WHERE person_id <= 400;
INSERT INTO public.conditions
SELECT condition_id + {0} * 100000, encounter_id + {0} * 100000, person_id + {0} * 1000, icd_code,
       description
  FROM public.conditions
 WHERE person_id <= 400;
"""
NOTE = policies.parse(
    'table = "t"\n[columns]\nnote = { role = "identifier", replace = "name" }\n'
).columns[0]


@pytest.mark.exhaustive
def test_columns_say_that_their_values_are_made_up(patients):
    dbanon.publish("patients", settings=patients.settings)
    ((comment,),) = patients.execute(
        "SELECT col_description('anon.patients'::regclass, attnum) FROM pg_attribute"
        " WHERE attrelid = 'anon.patients'::regclass AND attname = 'city'"
    )
    assert comment == "city: made up (city), the same in all rows of a person"


@pytest.mark.parametrize(
    ("extra", "refused"),
    [
        ("anatomy = true\n", "leave out anatomy"),
        ('subject = "note"\n', "replaced column name shows how many rows a person has"),
    ],
)
def test_values_are_refused_where_pseudonyms_are(patients, extra, refused):
    policy = policies.parse(
        extra + policies.dump(dbanon.load_policy("patients", settings=patients.settings))
    )
    with pytest.raises(PolicyError, match=refused):
        dbanon.set_policy(policy.table, policy, settings=patients.settings)


def test_a_live_view_has_none(patients):
    with pytest.raises(ConfigError, match="a live view cannot keep"):
        dbanon.publish("patients", kind="view", settings=patients.settings)


def test_a_locale_that_the_library_lacks_is_named(patients):
    policy = dbanon.load_policy("patients", settings=patients.settings)
    dbanon.set_policy(policy.table, replace(policy, locale="xx_XX"), settings=patients.settings)
    with pytest.raises(PolicyError, match="Faker has no locale xx_XX"):
        dbanon.publish("patients", settings=patients.settings)


def test_without_the_library_its_extra_is_named(patients, monkeypatch):
    monkeypatch.setattr("dbanon.domain.errors._is_installed", lambda _: False)
    with pytest.raises(ConfigError, match="needs Faker") as caught:
        dbanon.publish("patients", settings=patients.settings)
    assert "dbanon[replace]" in caught.value.hint


@pytest.mark.parametrize(
    ("source", "extra"),
    exhaustive_after(
        2,
        [
            ("seen", 'key = ["id"]\n'),
            ("patients", '[[masking]]\nmethod = "rounding"\nbase = 5\ncolumns = ["age"]\n'),
            ("patients", '[columns.note]\nrole = "insensitive"\n'),
        ],
    ),
)
def test_a_view_masked_rows_and_other_columns_have_them_too(database, source, extra):
    make_patients(database)
    database.execute(
        "ALTER TABLE public.patients ADD name text;"
        "UPDATE public.patients SET name = 'Canary ' || id;"
        "CREATE VIEW public.seen AS SELECT * FROM public.patients WHERE id > 10"
    )
    head, columns = f'table = "public.{source}"\nrest = "drop"\n', "[columns]\n"
    columns += 'age.role = "quasi"\ndisease.role = "sensitive"\n'
    columns += 'name = { role = "identifier", replace = "name" }\n'
    text = head + extra + columns if extra.startswith("key") else head + columns + extra
    dbanon.set_policy(source, policies.parse(text), settings=database.settings)
    dbanon.publish(source, k=5, settings=database.settings)
    names = [name for (name,) in published(database, "name", f"anon.{source}")]
    assert len(names) >= 189
    assert not [name for name in names if not name or "Canary" in name]
