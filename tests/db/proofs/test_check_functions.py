"""The functions that privacy models make have the signatures that users have called so far."""

import re

import psycopg
import pytest

from dbanon.db.models.functions import check_name
from dbanon.models.registry import MODELS

Q = "relation regclass, quasi_identifiers text[]"
S = f"{Q}, sensitive text"
NPD = f"{S}, c double precision, l integer, positive text[]"
SIGNATURES = {
    "k-anonymity": (f"{Q}, k integer", 0),
    "l-diversity": (f"{S}, l integer", 0),
    "probabilistic-l-diversity": (f"{S}, l double precision", 0),
    "entropy-l-diversity": (f"{S}, l double precision", 0),
    "recursive-l-diversity": (f"{S}, c double precision, l integer", 0),
    "pd-recursive-l-diversity": (NPD, 0),
    "npd-recursive-l-diversity": (
        f"{NPD}, share double precision, negative text[]",
        0,
    ),
    "alpha-k-anonymity": (f"{S}, alpha double precision", 0),
    "listed-alpha-k-anonymity": (f"{S}, alpha double precision, listed text[]", 0),
    "p-sensitivity": (f"{S}, p integer", 0),
    "t-closeness": (f"{S}, t double precision, distance text, tree jsonb", 2),
    "n-t-closeness": (f"{S}, n integer, t double precision, distance text, tree jsonb", 2),
    "beta-likeness": (f"{S}, beta double precision, kind text", 1),
    "delta-disclosure": (f"{S}, delta double precision", 0),
    "k-e-anonymity": (f"{S}, k integer, e double precision", 0),
    "m-uniqueness": (f"{S}, m integer", 0),
    "x-y-anonymity": ("relation regclass, x text[], y text[], k integer", 0),
    "k-map": (f"{Q}, population regclass, k integer, trees jsonb", 1),
    "delta-presence": (
        f"{Q}, population regclass, dmax double precision, dmin double precision, trees jsonb",
        2,
    ),
}
# How what a class achieves must lie to which parameter, from the definitions: the same classes tell
# it to the search and to the database, so it is written here once more.
KEPT = {
    "k-anonymity": {(">=", "k")},
    "l-diversity": {(">=", "l")},
    "probabilistic-l-diversity": {(">=", "l")},
    "entropy-l-diversity": {(">=", "l")},
    "recursive-l-diversity": {("<", "c")},
    "pd-recursive-l-diversity": {("<", "c")},
    "npd-recursive-l-diversity": {("<", "c")},
    "alpha-k-anonymity": {("<=", "alpha")},
    "listed-alpha-k-anonymity": {("<=", "alpha")},
    "p-sensitivity": {(">=", "p")},
    "t-closeness": {("<=", "t")},
    "n-t-closeness": {("<=", "t")},
    "beta-likeness": {("<=", "beta")},
    "delta-disclosure": {("<", "delta")},
    "k-e-anonymity": {(">=", "e")},
    "m-uniqueness": {(">=", "m")},
    "x-y-anonymity": {(">=", "k")},
    "k-map": {(">=", "k")},
    "delta-presence": {("<=", "dmax"), (">=", "dmin")},
}
COMPARED = re.compile(r"e\.achieved(?:, 'NaN'\))? (>=|<=|<|>) check_\w+\.(\w+)")
QS = "'public.t', '{q}', 's'"
BEYOND = {
    "alpha": f"check_alpha_k_anonymity({QS}, 1.01)",
    "alpha of listed values": f"check_listed_alpha_k_anonymity({QS}, 1.01, '{{a}}')",
    "no listed value": f"check_listed_alpha_k_anonymity({QS}, 0.5, '{{}}')",
    "t": f"check_t_closeness({QS}, 1.01)",
    "the t of n sets": f"check_n_t_closeness({QS}, 1, 1.01)",
    "the distance": f"check_t_closeness({QS}, 0.1, 'far')",
    "the kind": f"check_beta_likeness({QS}, 1, 'mild')",
    "dmax": "check_delta_presence('public.t', '{q}', 'public.t', 1.01)",
    "dmin": "check_delta_presence('public.t', '{q}', 'public.t', 0.5, 0.6)",
    "the share": f"check_npd_recursive_l_diversity({QS}, 1, 1, '{{a}}', 1.01, '{{b}}')",
    "no k": "check_k_anonymity('public.t', '{q}', 0)",
    "no l": f"check_entropy_l_diversity({QS}, 0.5)",
    "no number": f"check_delta_disclosure({QS}, 'NaN')",
    "infinity": f"check_delta_disclosure({QS}, 'Infinity')",
}
COUNTING = "required integer, achieved bigint"
MEASURING = "required double precision, achieved double precision"
REST = "classes bigint, failing_classes bigint, row_count bigint, verdict text"
FOUND = """
SELECT pg_get_function_identity_arguments(p.oid), p.pronargdefaults, pg_get_function_result(p.oid)
  FROM pg_proc AS p
 WHERE p.pronamespace = 'dbanon'::regnamespace AND p.proname = %s"""


@pytest.fixture(scope="module")
def connection(server, template):
    with server.database(template) as database, database.connect() as connection:
        yield connection


@pytest.mark.parametrize("name", MODELS)
def test_a_check_has_the_signature_that_it_had(connection, name):
    counted = COUNTING if name in {"k-anonymity", "l-diversity"} else MEASURING
    found = connection.execute(FOUND, (check_name(name),)).fetchall()
    assert found == [(*SIGNATURES[name], f"TABLE({counted}, {REST})")]


@pytest.mark.parametrize("name", MODELS)
def test_a_check_says_what_it_does(connection, name):
    (said,) = connection.execute(
        "SELECT obj_description(p.oid) FROM pg_proc AS p"
        " WHERE p.pronamespace = 'dbanon'::regnamespace AND p.proname = %s",
        (check_name(name),),
    ).fetchone()
    assert said.endswith(".")
    assert "{" not in said


@pytest.mark.parametrize("name", MODELS)
def test_a_check_compares_as_the_definition_does(connection, name):
    (body,) = connection.execute(
        "SELECT p.prosrc FROM pg_proc AS p"
        " WHERE p.pronamespace = 'dbanon'::regnamespace AND p.proname = %s",
        (check_name(name),),
    ).fetchone()
    assert KEPT[name] == set(COMPARED.findall(body))


@pytest.mark.parametrize("call", BEYOND.values(), ids=BEYOND)
def test_a_check_refuses_what_its_model_does_not_allow(connection, call):
    connection.execute("CREATE TABLE IF NOT EXISTS public.t (q int, s text)")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute(f"SELECT * FROM dbanon.{call}")


def test_a_range_of_infinite_numbers_is_no_range(connection):
    connection.execute("CREATE TABLE public.endless (q text, s double precision)")
    connection.execute("INSERT INTO public.endless VALUES ('a', 'Infinity'), ('a', 'Infinity')")
    (verdict,) = connection.execute(
        "SELECT verdict FROM dbanon.check_k_e_anonymity('public.endless', '{q}', 's', 1, 10)"
    ).fetchone()
    assert verdict == "failed"


def test_a_promise_of_a_model_that_nobody_knows_is_not_kept(connection):
    connection.execute("CREATE TABLE IF NOT EXISTS public.t (q int, s text)")
    connection.execute(
        """COMMENT ON TABLE public.t IS 'dbanon: {"release": 1, "quasi": ["q"], "sensitive": [],
           "models": [{"name": "k-anonymity", "params": {"k": 1}}, {"name": "new", "params": {}}],
           "trees": {}}'"""
    )
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="no privacy model 'new'"):
        connection.execute("SELECT * FROM dbanon.verify('public.t')")
