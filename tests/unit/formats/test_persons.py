"""Persons with several rows are found by names, foreign keys and counts."""

import tomllib
from dataclasses import replace

import pytest

from dbanon.domain.policy import Role
from dbanon.domain.table import (
    ColumnInfo,
    ColumnKind,
    ColumnStats,
    ForeignKey,
    TableInfo,
    TableName,
)
from dbanon.formats.policies import draft, parse
from dbanon.formats.suggestions import (
    candidates,
    differing,
    find,
    key_of,
    person_listed,
    person_numbered,
    suggest,
)

ROWS = 8376


def table_of(*names, table="cases", key=("row_id",), nullable=()):
    columns = tuple(
        ColumnInfo(name, "integer", "int4", ColumnKind.INTEGER, nullable=name in nullable)
        for name in dict.fromkeys([*key, *names])
    )
    return TableInfo(1, TableName("public", table), "r", columns, key)


def refers(column, table):
    return ForeignKey((column,), TableName("public", table))


def found(info, *keys, nulls=0, **distinct):
    stats = {name: ColumnStats(ROWS, nulls, count) for name, count in distinct.items()}
    persons = find(info, keys, stats)
    return None if persons is None else (persons.column, persons.is_sure)


@pytest.mark.parametrize(
    "name",
    [
        *("person_id", "PersonID", "patient_no", "patientid", "patient", "PATIENTS", "c_custkey"),
        *("customer_id", "cust_id", "EmployeeKey", "emp_no", "student nr", "defendant_code"),
        *("member_uuid", "ssn", "MRN", "passport_no", "study_subject_id", "pat_id", "userid"),
    ],
)
def test_the_number_of_a_person_is_known_by_its_name(name):
    assert person_numbered(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        *("patient_type", "customer_segment", "n_patients_seen", "person_count", "member_since"),
        *("store_id", "film_id", "payment_id", "id", "", "subjective", "userland", "address_id"),
        *("staff_id", "manager_id", "patient_name", "user_agent", "no_show"),
    ],
)
def test_other_names_are_not(name):
    assert person_numbered(name) is None


def test_a_table_of_persons_is_known_by_its_last_word():
    assert person_listed("hospital_patients") == person_listed("Patient") == "patient"
    assert person_listed("people") == "person"
    assert person_listed("patient_visits") is None
    assert person_listed("123") is None


def test_8376_rows_of_1152_persons():
    info = table_of("person_id", "age")
    persons = find(info, [], {"person_id": ColumnStats(ROWS, 0, 1152)})
    assert persons.figure == "8,376 rows, 1,152 persons by column person_id"
    assert persons.setting == 'subject = "person_id"'


def test_a_person_who_has_one_row_each_is_none_with_several():
    info = table_of("person_id", nullable=["person_id"])
    assert found(info, person_id=ROWS) is None
    assert found(info, person_id=ROWS - 100, nulls=100) is None
    assert found(info, person_id=0, nulls=ROWS) is None
    assert found(info, person_id=ROWS - 101, nulls=100) == ("person_id", True)


def test_a_foreign_key_to_persons_counts_whatever_the_column_is_called():
    info = table_of("of")
    assert found(info, of=599) is None
    assert found(info, refers("of", "customers"), of=599) == ("of", True)
    assert found(info, refers("of", "countries"), of=5) is None


def test_a_key_of_few_rows_each_may_stand_for_persons():
    info = table_of("of", "case_no")
    assert found(info, refers("of", "inventory"), of=4580) == ("of", False)
    assert found(info, case_no=4580) == ("case_no", False)
    assert found(info, case_no=15) is None  # a kind, not a person
    assert found(info, case_no=300) is None  # 28 rows each
    assert found(info, case_no=8300) is None  # all but unique


def test_codes_of_places_and_diseases_are_no_keys():
    assert candidates(table_of("zip_code", "icd_code", "case_no"), []) == ["case_no"]


def test_of_two_persons_the_one_with_fewer_rows_is_proposed_and_names_win():
    info = table_of("employee_id", "customer_id", "inventory_id")
    keys = [refers("employee_id", "employees"), refers("inventory_id", "inventory")]
    assert found(info, *keys, employee_id=9, customer_id=89, inventory_id=4000) == (
        "customer_id",
        True,
    )


def test_where_a_row_is_a_person_others_only_have_to_do_with_it():
    info = table_of("employee_id", "address_id", table="customers", key=("customer_id",))
    keys = [refers("employee_id", "employees"), refers("address_id", "address")]
    assert found(info, *keys, employee_id=9, address_id=4000) is None
    same = table_of("person_id", "patient_no", table="patients", key=("id",))
    assert candidates(same, []) == ["person_id", "patient_no"]


def test_a_reference_to_another_row_of_the_table_is_no_person_with_several_rows():
    info = table_of("reports_to", table="employees", key=("employee_id",))
    assert candidates(info, [refers("reports_to", "employees")]) == []


def test_a_key_of_one_column_needs_no_count_and_part_of_one_does():
    assert candidates(table_of(key=("person_id",)), []) == []
    assert candidates(table_of(key=("person_id", "visit_no")), []) == ["person_id", "visit_no"]


def test_a_key_of_several_columns_names_no_subject():
    info = table_of("country", "of")
    assert candidates(info, [ForeignKey(("country", "of"), TableName("public", "people"))]) == []


def test_persons_who_may_not_be_counted_are_suspected():
    info = table_of("person_id", "case_no")
    persons = find(info, [], {})
    assert (persons.column, persons.n_rows) == ("person_id", None)
    assert "not counted" in persons.figure


def drafted(info, *keys, pairs=None, nulls=0, **distinct):
    stats = {name: ColumnStats(ROWS, nulls, count) for name, count in distinct.items()}
    persons = find(info, keys, stats)
    suggested = suggest(info, stats, persons)
    return draft(info, suggested, persons, differing=differing(suggested, persons, pairs or {}))


def test_a_draft_names_the_subject_with_the_figure():
    text = drafted(table_of("of", "age"), refers("of", "customers"), of=599)
    assert parse(text).subject == "of"
    assert "# 8,376 rows, 599 persons by column of (refers to public.customers)\n" in text
    roles = {rule.column: rule.role for rule in parse(text).columns}
    assert roles["of"] is Role.IDENTIFIER


@pytest.mark.parametrize("name", ["of\x7f\n", 'a"b', "\U0001f600\u2028"])
def test_a_draft_names_any_subject(name):
    text = drafted(table_of(name), refers(name, "customers"), **{name: 599})
    assert tomllib.loads(text)["subject"] == name


def test_a_draft_leaves_to_its_reader_what_is_not_sure():
    text = drafted(table_of("case_no"), case_no=4000)
    assert parse(text).subject is None
    assert ", if these are persons" in text
    assert '\n# subject = "case_no"\n' in text
    info = table_of("person_id", nullable=["person_id"])
    assert parse(drafted(info, person_id=599)).subject == "person_id"
    text = drafted(info, person_id=599, nulls=7)
    assert parse(text).subject is None
    assert ', once its 7 NULLs are filled or left out by where\n# subject = "person_id"\n' in text


def test_a_draft_names_what_others_know_and_rows_of_a_person_differ_in():
    info = table_of("person_id", "age", "visited", "salary")
    pairs = {"id": ROWS, "age": 900, "visited": 5000, "salary": 4000}
    text = drafted(info, person_id=900, age=50, visited=300, salary=40, pairs=pairs)
    assert "# rows of a person differ in visited; each class" in text
    assert parse(text).rows_per_subject is None
    assert parse(text.replace("# rows_per_subject", "rows_per_subject")).rows_per_subject == 1
    same = drafted(info, person_id=900, age=50, visited=300, pairs={"age": 900, "visited": 900})
    assert "differ" not in same
    assert "differ" not in drafted(info, age=50, visited=300, pairs=pairs)


def test_a_person_and_a_date_are_a_key_if_no_pair_comes_twice():
    info = table_of("person_id", "age", "visited", key=())
    stats = {name: ColumnStats(ROWS, 0, 900) for name in ("person_id", "age", "visited")}
    persons = find(info, [], stats)
    pairs = {"age": ROWS, "visited": ROWS}
    assert key_of(info, stats, persons, pairs=pairs) == ("person_id", "age")
    day = ColumnInfo("visited", "date", "date", ColumnKind.DATE)
    dated = replace(info, columns=(*info.columns[:-1], day))
    assert key_of(dated, stats, persons, pairs=pairs) == ("person_id", "visited")
    assert key_of(dated, stats, persons, pairs={"age": 950, "visited": ROWS - 1}) == ()
    stats["visited"] = ColumnStats(ROWS, 1, 900)
    assert key_of(dated, stats, persons, pairs=pairs) == ("person_id", "age")


def test_a_moment_is_no_key_where_a_person_and_a_moment_are_one():
    info = table_of("boarded", "person_id", key=())
    moment = ColumnInfo("boarded", "timestamp", "timestamp", ColumnKind.TIMESTAMP)
    info = replace(info, columns=(moment, info.columns[1]))
    stats = {"boarded": ColumnStats(ROWS, 0, ROWS), "person_id": ColumnStats(ROWS, 0, 900)}
    persons, pairs = find(info, [], stats), {"boarded": ROWS}
    assert ("person_id", "boarded") == key_of(info, stats, persons, pairs=pairs)
    assert ("boarded",) == key_of(info, stats)


def test_who_wrote_a_row_is_not_the_person_of_the_row():
    info = table_of("creator", "changed_by", table="person", key=("person_id",))
    keys = (refers("creator", "users"), refers("changed_by", "users"))
    assert found(info, *keys, creator=12, changed_by=15) is None
    assert found(table_of("creator"), keys[0], creator=900) == ("creator", True)
