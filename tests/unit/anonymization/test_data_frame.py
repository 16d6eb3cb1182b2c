import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from builders import LETTERS
from selection import exhaustive_after

import dbanon
from dbanon.anonymization.data_frame import anonymize
from dbanon.domain.errors import PolicyError, Unsatisfiable
from dbanon.domain.policy import ModelSpec

N = 40
TABLE = pa.table(
    {
        "name": [f"person {i}" for i in range(N)],
        "age": [20 + i for i in range(N)],
        "sex": pa.array(["f", "m"] * (N // 2)).dictionary_encode(),
        "letter": list("abcdefga" * (N // 8)),
        "disease": ["flu", "cold", "gout", None] * (N // 4),
        "note": [f"note {i}" for i in range(N)],
    }
)


def published(table=TABLE, **options):
    defaults = {"k": 4, "quasi": ["age", "sex"], "sensitive": ["disease"]}
    return anonymize(table, **(defaults | options))


def test_only_named_columns_come_back_recoded():
    result = published(l=2, insensitive=["note"])
    assert ["age", "sex", "disease", "note"] == result.column_names
    assert N == result.num_rows
    classes = Counter(zip(*(result.column(c).to_pylist() for c in ("age", "sex")), strict=True))
    assert min(classes.values()) >= 4
    assert all(label.startswith("[") for label, _ in classes)
    assert sorted(TABLE["note"].to_pylist()) == sorted(result["note"].to_pylist())


def test_rows_come_in_another_order_every_time():
    orders = {tuple(published(insensitive=["note"])["note"].to_pylist()) for _ in range(3)}
    assert 3 == len(orders)
    assert tuple(TABLE["note"].to_pylist()) not in orders


def test_suppressed_rows_leave_no_trace():
    table = pa.table(
        {
            "age": [*[30] * 9, 99],
            "disease": pa.array([*["flu"] * 9, "secret"]).dictionary_encode(),
        }
    ).replace_schema_metadata({"note": "secret"})
    result = published(table, quasi=["age"], max_suppressed=0.1)
    assert 9 == result.num_rows
    assert (pa.string(), None) == (result["disease"].type, result.schema.metadata)


def test_a_pandas_frame_comes_back_as_one():
    frame = TABLE.to_pandas().set_index("name")
    result = published(frame)
    assert isinstance(result, pd.DataFrame)
    assert ["age", "sex", "disease"] == list(result.columns)
    assert list(range(N)) == list(result.index)


def test_anything_with_an_arrow_stream_is_taken():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return TABLE.__arrow_c_stream__(requested_schema)

    assert isinstance(published(Stream()), pa.Table)


def test_every_kind_of_column_is_published():
    day, moment = date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)
    columns = {
        "int": pa.array([1, 2], pa.uint8()),
        "float": pa.array([1.5, 2.5], pa.float32()),
        "decimal": pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(38, 18)),
        "date": [day, day],
        "moment": pa.array([moment, moment], pa.timestamp("ns", "Europe/Paris")),
        "naive": pa.array([moment, moment], pa.timestamp("s")),
        "flag": [True, None],
        "text": pa.array(["a", "b"], pa.large_string()),
        "nothing": pa.nulls(2),
    }
    result = anonymize(pa.table(columns), k=2, quasi=list(columns))
    assert {
        "int": "[1,2]",
        "float": "[1.5,2.5]",
        "decimal": "[1.5,2.25]",
        "date": "[2020-01-01,2020-01-01]",
        "moment": '["2020-01-01 00:00:00+00","2020-01-01 00:00:00+00"]',
        "naive": '["2020-01-01 00:00:00","2020-01-01 00:00:00"]',
        "flag": "*",
        "text": "*",
        "nothing": None,
    } == result.to_pylist()[0]


def test_taxonomies_and_recodings_go_by_column():
    result = published(
        quasi=["age", "letter"],
        taxonomies={"letter": LETTERS},
        recodings={"age": "interval-text"},
        k=20,
    )
    assert set(result["letter"].to_pylist()) <= set(LETTERS.labels)
    assert not any("," in label and ", " not in label for label in result["age"].to_pylist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quasi": ["age", "lost"]}, "lost is missing"),
        ({"quasi": ["age", "age"]}, "age is missing or named more than once"),
        ({"insensitive": ["disease"]}, "disease is missing or named more than once"),
        ({"recodings": {"disease": "set"}}, "disease has a recoding but is no quasi"),
    ],
)
def test_columns_named_wrongly_are_refused(options, message):
    with pytest.raises(PolicyError, match=message):
        published(**options)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**63, 1], pa.uint64()),
        pa.array([1, 1001], pa.timestamp("ns")),
        pa.array([Decimal("1.23456789012345678"), Decimal(1)]),
        pa.array([[1], [2]]),
    ],
)
def test_values_that_would_not_survive_are_refused_without_being_told(values):
    with pytest.raises(PolicyError, match="column x holds") as caught:
        anonymize(pa.table({"x": values}), k=2, quasi=["x"])
    assert "9223372036854775808" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        [10**30, 1],
        [2**64, 1],
        [1, "secret"],
        [[1, "secret"], []],
        [Decimal("1e400"), Decimal(1)],
        [1j, 2j],
    ],
)
@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_values_that_arrow_cannot_hold_are_refused_without_being_told(make, values):
    with pytest.raises(PolicyError, match="column x holds values of several types") as caught:
        anonymize(make({"y": [1, 2], "x": values}), k=2, quasi=["y"])
    assert all(text not in str(caught.value) for text in ("secret", "1000", str(2**64)))


@pytest.mark.parametrize(
    "data",
    [
        {"x": [1, 2], "y": [1]},
        [{"x": 1}, {"x": 2}],
        None,
        pd.Series([1, 2], name="x"),
        pd.DataFrame([[1, 2, 3]], columns=["x", "y", "y"]),
    ],
)
def test_what_is_no_table_is_refused(data):
    with pytest.raises(PolicyError, match="is no table of columns"):
        anonymize(data, k=2, quasi=["x"])


@pytest.mark.parametrize("label", [0, ("x", "y"), None])
def test_a_column_that_no_text_names_is_refused(label):
    frame = pd.DataFrame({label: [1, 2]})
    with pytest.raises(PolicyError, match="columns are named by texts") as caught:
        anonymize(frame, k=2, quasi=[label])
    frame.columns = frame.columns.map(str)
    assert "data.columns = data.columns.map(str)" == caught.value.hint
    assert len(anonymize(frame, k=2, quasi=[str(label)])) == 2


def test_too_few_rows_are_unsatisfiable():
    with pytest.raises(Unsatisfiable):
        published(k=N + 1)


def test_it_is_part_of_the_public_api_and_loads_no_compiler():
    assert anonymize is dbanon.anonymize
    code = "import sys, dbanon.anonymization.data_frame, dbanon.anonymization.registry\n"
    code += "print(sorted(sys.modules.keys() & {'numba', 'pandas'}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == run.stdout.strip()


def test_models_are_asked_of_a_frame():
    data = pa.table({"age": list(range(20)), "salary": [9, 10] * 10})
    asked = [ModelSpec("t-closeness", {"t": 0.1, "distance": "ordered"})]
    published = anonymize(data, k=2, models=asked, quasi=["age"], sensitive=["salary"])
    classes = {}
    for age, salary in zip(
        *(published.column(c).to_pylist() for c in ("age", "salary")), strict=True
    ):
        classes.setdefault(age, []).append(salary)
    assert len(classes) > 1
    assert all(abs(values.count(9) / len(values) - 0.5) <= 0.1 for values in classes.values())


def test_a_frame_is_grouped_by_weights():
    """Two columns that cannot both stay exact: the heavier one does."""
    data = pa.table({"x": [0, 0, 1, 1], "y": [0, 1, 0, 1]})
    for heavy, light in ("xy", "yx"):
        found = anonymize(data, k=2, quasi=["x", "y"], weights={heavy: 5.0})
        assert {"[0,0]", "[1,1]"} == set(found.column(heavy).to_pylist())
        assert {"[0,1]"} == set(found.column(light).to_pylist())
    with pytest.raises(PolicyError, match="column z has a weight but is no quasi-identifier"):
        anonymize(data, k=2, quasi=["x"], weights={"z": 2.0})
    with pytest.raises(PolicyError, match="column x: a weight is a number from 0 to"):
        anonymize(data, k=2, quasi=["x"], weights={"x": -1.0})


def test_a_data_frame_keeps_one_column_of_each():
    data = pa.table({"age": [1, 2, 3, 4]})
    with pytest.raises(PolicyError, match="a data frame keeps one"):
        anonymize(data, quasi=["age"], k=2, recodings={"age": "bounds"})


def test_a_weight_above_all_others_groups_by_the_column_first():
    years = [2000 + i % 7 % 6 for i in range(400)] + [2006] * 3
    ages = [18 + i * 37 % 71 for i in range(len(years))]
    frame = pd.DataFrame({"year": years, "age": ages})
    asked = {"k": 5, "quasi": ["year", "age"], "recodings": {"year": "interval-text"}}
    plain = anonymize(frame, **asked)["year"].tolist()
    first = anonymize(frame, **asked, weights={"year": 1000.0})["year"].tolist()
    assert sum("," in shown for shown in plain) > 5
    assert first.count("[2005, 2006]") == sum("," in shown for shown in first) == 5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("columns", "weight"), exhaustive_after(2, [(3, 1e100), (3, 1e-300), (442, 1.0)])
)
def test_many_columns_and_odd_weights_warn_of_nothing(columns, weight):
    data = pa.table({f"c{i}": [row * (i + 7) % 5 for row in range(40)] for i in range(columns)})
    for algorithm in ("auto", "mondrian", "mdav"):
        found = anonymize(
            data, quasi=data.column_names, k=3, algorithm=algorithm, weights={"c0": weight}
        )
        assert found.num_rows == 40
