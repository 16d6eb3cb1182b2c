"""Columns of ordinary schemas get the roles that somebody who knows the data gives them."""

import pytest

from dbanon.domain.caution import Contents
from dbanon.domain.policy import ModelSpec, Policy, Role
from dbanon.domain.table import ColumnInfo, ColumnKind, ColumnStats, TableInfo, TableName
from dbanon.formats.cautions import cautions
from dbanon.formats.suggestions import find, suggest

KINDS = {
    "int": ("int4", ColumnKind.INTEGER),
    "num": ("numeric", ColumnKind.DECIMAL),
    "float": ("float8", ColumnKind.FLOAT),
    "text": ("text", ColumnKind.CATEGORY),
    "uuid": ("uuid", ColumnKind.CATEGORY),
    "date": ("date", ColumnKind.DATE),
    "time": ("timestamptz", ColumnKind.TIMESTAMPTZ),
    "bool": ("bool", ColumnKind.BOOLEAN),
    "enum": ("mood", ColumnKind.ORDINAL),
    "array": ("_text", ColumnKind.OTHER),
    "bytes": ("bytea", ColumnKind.OTHER),
}

# Of each table: its rows, its key, the persons who have several of them if any; then of each column
# its type, the number of its values, and the role.
TABLES = """
rentals.customer 599 customer_id -
    customer_id int 599 identifier
    store_id int 2 quasi
    first_name text 591 identifier
    last_name text 599 identifier
    email text 599 identifier
    address_id int 599 identifier
    activebool bool 1 quasi
    create_date date 1 quasi
    last_update time 1 quasi
    active int 2 quasi
rentals.address 603 address_id -
    address_id int 603 identifier
    address text 603 identifier
    address2 text 1 identifier
    district text 378 quasi
    city_id int 599 quasi
    postal_code text 597 quasi
    phone text 602 identifier
rentals.rental 16044 rental_id customer_id
    rental_id int 16044 identifier
    rental_date time 15815 quasi
    inventory_id int 4580 identifier
    customer_id int 599 identifier
    return_date time 15836 quasi
    staff_id int 2 identifier
rentals.payment 14596 payment_id customer_id
    payment_id int 14596 identifier
    customer_id int 599 identifier
    staff_id int 2 identifier
    rental_id int 14592 identifier
    amount num 19 sensitive
    payment_date time 14365 quasi
rentals.staff 2 staff_id -
    staff_id int 2 identifier
    first_name text 2 identifier
    email text 2 identifier
    store_id int 2 quasi
    username text 2 identifier
    password text 1 identifier
    picture bytes 1 identifier
rentals.film 1000 film_id -
    film_id int 1000 identifier
    title text 1000 identifier
    description text 1000 identifier
    release_year int 1 quasi
    language_id int 6 quasi
    rental_duration int 5 quasi
    rental_rate num 3 sensitive
    rating enum 5 quasi
    special_features array 15 identifier
hr.employees 107 employee_id -
    employee_id int 107 identifier
    first_name text 91 identifier
    last_name text 102 identifier
    email text 107 identifier
    phone_number text 107 identifier
    hire_date date 98 quasi
    job_id text 19 quasi
    salary num 57 sensitive
    commission_pct num 7 sensitive
    manager_id int 18 identifier
    department_id int 11 quasi
    dept_name text 11 quasi
hr.employee 290 BusinessEntityID -
    BusinessEntityID int 290 identifier
    NationalIDNumber text 290 identifier
    LoginID text 290 identifier
    JobTitle text 67 quasi
    BirthDate date 275 quasi
    MaritalStatus text 2 quasi
    Gender text 2 quasi
    HireDate date 164 quasi
    VacationHours int 100 quasi
    SickLeaveHours int 51 quasi
    rowguid uuid 290 identifier
hr.job_history 316 row_id employee_id
    row_id int 316 identifier
    employee_id int 290 identifier
    start_date date 200 quasi
    end_date date 200 quasi
    job_title text 67 quasi
    Rate num 32 sensitive
    PayFrequency int 2 quasi
health.patients 1171 Id -
    Id uuid 1171 identifier
    BIRTHDATE date 1100 quasi
    DEATHDATE date 171 quasi
    SSN text 1171 identifier
    DRIVERS text 957 identifier
    PASSPORT text 1171 identifier
    PREFIX text 3 identifier
    FIRST text 900 identifier
    MIDDLE text 700 identifier
    LAST text 480 identifier
    SUFFIX text 3 identifier
    MAIDEN text 300 identifier
    MARITAL text 2 quasi
    RACE text 5 quasi
    ETHNICITY text 2 quasi
    GENDER text 2 quasi
    BIRTHPLACE text 300 quasi
    ADDRESS text 1171 identifier
    CITY text 230 quasi
    STATE text 1 quasi
    COUNTY text 14 quasi
    FIPS text 14 quasi
    ZIP text 250 quasi
    LAT float 1171 quasi
    LON float 1171 quasi
    HEALTHCARE_EXPENSES num 1171 quasi
    HEALTHCARE_COVERAGE num 1130 quasi
    INCOME int 1120 quasi
health.encounters 53346 Id PATIENT
    Id uuid 53346 identifier
    START time 52000 quasi
    STOP time 52000 quasi
    PATIENT uuid 1171 identifier
    ORGANIZATION text 1119 quasi
    PROVIDER uuid 5855 identifier
    PAYER text 10 quasi
    ENCOUNTERCLASS text 6 quasi
    CODE int 46 sensitive
    DESCRIPTION text 52 sensitive
    BASE_ENCOUNTER_COST num 4 sensitive
    TOTAL_CLAIM_COST num 9000 quasi
    PAYER_COVERAGE num 700 quasi
    REASONCODE int 80 sensitive
    REASONDESCRIPTION text 80 sensitive
health.conditions 8376 row_id PATIENT
    row_id int 8376 identifier
    START date 6000 quasi
    STOP date 5000 quasi
    PATIENT uuid 1152 identifier
    ENCOUNTER uuid 8000 identifier
    CODE int 129 sensitive
    DESCRIPTION text 129 sensitive
health.claims_lines 9000 line_id member_id
    line_id int 9000 identifier
    member_id text 1200 identifier
    icd10_code text 400 sensitive
    cpt_code text 300 sensitive
    snomed_code text 300 sensitive
    loinc text 90 sensitive
    provider_npi_number text 500 identifier
    allowed_amount num 7000 quasi
    risk_score float 8800 quasi
court.scores 11757 id person_id
    id int 11757 identifier
    person_id int 11001 identifier
    name text 11584 identifier
    first text 4112 identifier
    last text 5812 identifier
    compas_screening_date date 690 quasi
    sex text 2 quasi
    dob date 7800 quasi
    age int 65 quasi
    age_cat text 3 quasi
    race text 6 quasi
    juv_fel_count int 11 quasi
    decile_score int 10 sensitive
    juv_misd_count int 10 quasi
    juv_other_count int 10 quasi
    priors_count int 37 quasi
    days_b_screening_arrest int 423 quasi
    c_jail_in time 10577 quasi
    c_jail_out time 10517 quasi
    c_case_number text 11005 identifier
    c_offense_date date 1036 quasi
    c_arrest_date date 779 quasi
    c_days_from_compas int 501 quasi
    c_charge_degree text 3 sensitive
    c_charge_desc text 514 sensitive
    is_recid int 2 sensitive
    r_case_number text 3703 identifier
    r_charge_degree text 10 sensitive
    r_days_from_arrest int 200 quasi
    r_offense_date date 1090 quasi
    r_charge_desc text 341 sensitive
    r_jail_in date 972 quasi
    r_jail_out date 938 quasi
    is_violent_recid int 2 sensitive
    vr_case_number text 882 identifier
    vr_charge_degree text 9 sensitive
    vr_offense_date date 599 quasi
    vr_charge_desc text 88 sensitive
    type_of_assessment text 1 quasi
    score_text text 3 sensitive
    screening_date date 690 quasi
    v_type_of_assessment text 1 quasi
    v_decile_score int 10 sensitive
    v_score_text text 3 sensitive
    v_screening_date date 690 quasi
    in_custody date 1156 quasi
    out_custody date 1169 quasi
    start int 230 quasi
    end int 1115 quasi
    event int 2 quasi
    two_year_recid int 2 sensitive
    marital_status text 7 quasi
    license_no text 9000 identifier
"""


def read():
    tables = {}
    for line in TABLES.strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            columns = tables.setdefault(words[0], (int(words[1]), words[2], words[3], []))[3]
        else:
            columns.append((words[0], words[1], int(words[2]), words[3]))
    return tables


READ = read()


def looked_at(name):
    """Return the description of a table, its counts, and who has several rows."""
    n_rows, key, _, described = READ[name]
    columns = tuple(
        ColumnInfo(column, KINDS[kind][0], *KINDS[kind], nullable=False)
        for column, kind, *_ in described
    )
    info = TableInfo(1, TableName(*name.split(".")), "r", columns, (key,))
    stats = {column: ColumnStats(n_rows, 0, count) for column, _, count, _ in described}
    return info, stats, find(info, [], stats)


@pytest.mark.parametrize("name", READ)
def test_an_ordinary_table_is_understood(name):
    info, stats, persons = looked_at(name)
    expected = {column: role for column, *_, role in READ[name][3]}
    assert expected == {r.column: r.role.value for r, _ in suggest(info, stats, persons)}
    sure = persons.column if persons is not None and persons.is_sure else "-"
    assert READ[name][2] == sure


def test_the_court_has_53_columns():
    assert len(READ["court.scores"][3]) == 53


@pytest.mark.parametrize("name", READ)
def test_without_counts_nothing_more_is_published_as_it_is(name):
    info, stats, _ = looked_at(name)
    counted = dict(roles_of(info, stats))
    for column, role in roles_of(info, {}):
        assert role is not Role.INSENSITIVE
        if role is Role.SENSITIVE and counted[column] is not Role.SENSITIVE:
            assert counted[column] is Role.QUASI  # so fine that it singles out, as counts tell


def roles_of(info, stats):
    return [(rule.column, rule.role) for rule, _ in suggest(info, stats)]


@pytest.mark.parametrize("name", READ)
def test_what_is_suggested_is_not_warned_of(name):
    info, stats, persons = looked_at(name)
    rules = tuple(rule for rule, _ in suggest(info, stats, persons))
    policy = Policy(
        info.name,
        rules,
        (ModelSpec("k-anonymity", {"k": 5}), ModelSpec("l-diversity", {"l": 2})),
        subject=persons.column if persons is not None else None,
    )
    contents = {
        rule.column: Contents(stats[rule.column].n_rows, stats[rule.column].n_distinct)
        for rule in rules
        if rule.role is Role.SENSITIVE
    }
    found = cautions(
        policy, info, contents=contents, unique=[info.primary_key], complete=True, persons=persons
    )
    assert found == []
