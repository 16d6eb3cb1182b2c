"""What is allowed and seldom meant is warned of, and refused if asked."""

import json
import sys

import pytest

import dbanon
from dbanon.cli import main
from dbanon.domain.policy_warning import Code

POLICY = """
table = "public.people"
models = { k = 5, l = 2 }
[columns]
id.role = "identifier"
age.role = "quasi"
test.role = "sensitive"
salary.role = "sensitive"
badge.role = "insensitive"
email.role = "insensitive"
ward.role = "insensitive"
"""
EXPECTED = {
    "test": "2 values of column test differ only in spelling",
    "salary": "sensitive column salary has nearly unique values",
    "badge": "insensitive column badge has a UNIQUE index",
    "email": "insensitive column email looks like an identifier",
}


@pytest.fixture
def people(database, tmp_path):
    """120 people with all that is warned of, and the file of their policy."""
    database.execute(
        "CREATE TABLE public.people (id int PRIMARY KEY, age int, test text, salary int,"
        " badge text, email text, ward text);"
        "CREATE UNIQUE INDEX ON public.people (lower(badge)) WHERE id > 10;"
        "INSERT INTO public.people SELECT i, i % 30,"
        " (ARRAY['hiv', 'HIV ', 'none', 'flu'])[1 + i % 4],"
        " 1000 + i, 'b' || i, 'mail' || i % 9, 'w' || i % 9 FROM generate_series(1, 120) AS i"
    )
    file = tmp_path / "people.toml"
    file.write_text(POLICY)
    return database, str(file)


@pytest.fixture
def run(people, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["dbanon", *words, "--dsn", people[0].dsn])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.exhaustive
def test_policy_set_and_publish_warn_and_strict_refuses(people, run):
    database, file = people
    code, _, err = run("policy", "set", "people", "--file", file, "--strict")
    assert code == 1
    assert "the policy has 4 warnings, and --strict refuses" in err
    with pytest.raises(dbanon.PolicyError, match="has no policy"):
        dbanon.load_policy("people", settings=database.settings)
    for words in (
        ("policy", "set", "--file", file),
        ("plan", "people"),
        ("publish", "people"),
        ("refresh", "people"),
    ):
        code, _, err = run(*words)
        assert code == 0
        for column, text in EXPECTED.items():
            assert f"warning: {text}" in err, (words, column)
        for value in ("hiv", "b17", "1017"):
            assert value not in err.lower()
    for words in (
        ("plan", "people", "--strict"),
        ("publish", "people", "--strict"),
        ("refresh", "people", "--strict"),
    ):
        code, _, err = run(*words)
        assert code == 1
        assert all(text in err for text in EXPECTED.values())
    assert [1] == [release.id for release in dbanon.list_releases(settings=database.settings)]


@pytest.mark.exhaustive
def test_warnings_are_part_of_the_document(people, run):
    run("policy", "set", "people", "--file", people[1])
    for words in (("plan", "people"), ("publish", "people", "--k", "1")):
        _, out, _ = run(*words, "--json")
        warnings = json.loads(out)["warnings"]
        found = {item["column"]: item["message"] for item in warnings}
        for column, text in EXPECTED.items():
            assert found[column].startswith(text), column
        assert (None in found) is ("--k" in words)
        assert {"code", "column", "message", "hint"} == set(warnings[0])


@pytest.mark.exhaustive
def test_strict_lets_pass_what_nothing_is_said_of(people, run):
    database, file = people
    database.execute(
        "UPDATE public.people SET test = CASE test WHEN 'HIV ' THEN 'hiv' ELSE test END,"
        " salary = salary / 100 * 100; DROP INDEX public.people_lower_idx;"
        "COMMENT ON COLUMN public.people.email IS 'dbanon: insensitive';"
        "UPDATE public.people SET badge = ward"
    )
    for words in (
        ("policy", "set", "people", "--file", file),
        ("publish", "people"),
        ("refresh", "people"),
    ):
        code, _, err = run(*words, "--strict")
        expected = (
            "earlier release",
            "by pools of",
            "dbanon help CODE",
        )  # of releases of so small a table
        others = [line for line in err.splitlines() if not any(text in line for text in expected)]
        assert (0, []) == (code, others)


@pytest.mark.exhaustive
def test_a_reason_in_the_policy_silences_and_is_kept_with_the_release(people, run, tmp_path):
    database, _ = people
    reasons = {
        "test": "alike-values: the laboratory writes it so",
        "salary": "near-unique: of no person",
        "badge": "unique-index: drawn by lot each day",
        "email": "looks-like-identifier: the kind of post",
    }
    allowed = tmp_path / "allowed.toml"
    lines = "".join(f"{column}.allow = [{json.dumps(why)}]\n" for column, why in reasons.items())
    allowed.write_text(POLICY + lines)
    for words in (("policy", "set", "people", "--file", str(allowed)), ("publish", "people")):
        code, _, err = run(*words, "--strict")
        assert (code, "warning" in err) == (0, False)
    (release,) = dbanon.list_releases(settings=database.settings)
    kept = {rule.column: rule.allow for rule in release.policy.columns if rule.allow}
    assert kept == {column: (why,) for column, why in reasons.items()}
    code, out, _ = run("policy", "export", "people")
    assert all(json.dumps(why) in out for why in reasons.values())


CONTACTS = """
table = "public.contacts"
models = { k = 5, l = 2 }
[columns]
id.role = "identifier"
age.role = "quasi"
decade.role = "insensitive"
one.role = "insensitive"
two.role = "insensitive"
three.role = "insensitive"
seen.role = "insensitive"
log.role = "insensitive"
reason.role = "sensitive"
"""
LOOKS = {
    "decade": Code.DERIVED,
    "one": Code.LOOKS_LIKE_SSN,
    "two": Code.LOOKS_LIKE_EMAIL,
    "three": Code.LOOKS_LIKE_PHONE,
    "seen": Code.TO_THE_SECOND,
    "log": Code.FREE_TEXT,
    "reason": Code.LOOKS_LIKE_NAME,
}


@pytest.mark.exhaustive
def test_values_are_looked_at_and_doctor_looks_again(people, run, tmp_path):
    database, _ = people
    database.execute(
        "CREATE TABLE public.contacts (id int PRIMARY KEY, age int, decade text, one text,"
        " two text, three text, seen timestamp, log jsonb, reason text);"
        "INSERT INTO public.contacts SELECT i, i % 50, 'in the ' || i % 50 / 10 || '0s',"
        " '123-45-6' || 100 + i % 60, 'user' || i % 60 || '@example.org',"
        " '555-123-4' || 100 + i % 60, '2020-01-01'::timestamp + i % 60 * interval '443 min 7 s',"
        " '{}', (ARRAY['Mary', 'John', 'Linda', 'Ruth', 'Frank', 'Elena'])[1 + i % 6]"
        " FROM generate_series(1, 300) AS i"
    )
    file = tmp_path / "contacts.toml"
    file.write_text(CONTACTS)
    found = []
    dbanon.set_policy("contacts", file, warn=found.append, settings=database.settings)
    assert {caution.column: caution.code for caution in found} == LOOKS
    assert len(found) == len(LOOKS)
    run("publish", "contacts")
    looked = dbanon.doctor(settings=database.settings)
    assert [f.message.rpartition("[")[2] for f in looked if f.level == "warning"] == [
        f"{caution.code}]" for caution in found
    ]
    assert all("no leak found" not in finding.message for finding in looked)
    said = str(found) + str(looked)
    assert all(value not in said for value in ("123-45", "example.org", "555", "Mary", "2020-"))

    lines = "".join(f'{column}.allow = ["{code}: of a test"]\n' for column, code in LOOKS.items())
    file.write_text(CONTACTS + lines)
    dbanon.set_policy("contacts", file, strict=True, settings=database.settings)
    dbanon.publish("contacts", strict=True, settings=database.settings)
    assert {"ok"} == {finding.level for finding in dbanon.doctor(settings=database.settings)}


def test_columns_that_may_not_be_read_are_judged_by_their_indexes(people):
    database, file = people
    reader = database.role("author_of_policies")
    database.execute(f"GRANT USAGE ON SCHEMA dbanon TO {reader}")
    database.execute(
        f"GRANT SELECT ON ALL TABLES IN SCHEMA dbanon TO {reader};"
        f"GRANT INSERT, UPDATE ON dbanon.policy TO {reader};"
        f"GRANT INSERT ON dbanon.policy_version TO {reader};"
        f"GRANT SELECT (id, age) ON public.people TO {reader}"
    )
    found = []
    settings = dbanon.Settings(dsn=database.dsn_as(reader))
    dbanon.set_policy("public.people", file, warn=found.append, settings=settings)
    assert [caution.column for caution in found] == ["badge", "email"]
