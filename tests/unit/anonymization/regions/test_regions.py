"""A table that is encoded, cut, grouped and measured in parts, beside the same in one piece."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from selection import exhaustive_after

from dbanon.anonymization.encoding.encode import encode
from dbanon.anonymization.interfaces import Requirement
from dbanon.anonymization.loss.metrics import publication, report
from dbanon.anonymization.outcome import published_values
from dbanon.anonymization.regions.cutting import cut_regions, domains_of, rows_within
from dbanon.anonymization.regions.grouping import border_of, group_rows, improve_border, join
from dbanon.anonymization.registry import METRICS
from dbanon.domain.assignment import Assignment
from dbanon.domain.errors import DatabaseError
from dbanon.domain.outcomes import Stages
from dbanon.domain.policy import ColumnRule, ModelSpec, Policy, Role
from dbanon.domain.table import ColumnKind, TableName
from dbanon.models.demands import demands_of, wholes

ROWS = 3_000
KINDS = {
    "age": ColumnKind.INTEGER,
    "zip": ColumnKind.CATEGORY,
    "born": ColumnKind.DATE,
    "height": ColumnKind.FLOAT,
    "disease": ColumnKind.CATEGORY,
}
OF_NUMBERS = {"il1", "il2", "il3", "il4", "il5", "il-overall", "il1s"}
OF_ROWS = {"sse-ratio", "max-radius", "size-times-radius", *OF_NUMBERS}


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(3)
    some = lambda values, share: [  # noqa: E731 - it is short
        None if gone else value
        for value, gone in zip(values, random.random(ROWS) < share, strict=True)
    ]
    return pa.table(
        {
            "age": pa.array(some(random.integers(0, 90, ROWS).tolist(), 0.1), pa.int64()),
            "zip": pa.array(some([f"z{i}" for i in random.integers(0, 40, ROWS)], 0.05)),
            "born": pa.array(
                [date(1950, 1, 1) + timedelta(int(i)) for i in random.integers(0, 9000, ROWS)]
            ),
            "height": pa.array(random.normal(0.0, 1.0, ROWS).round(2)),
            "disease": pa.array(some([f"d{i}" for i in random.integers(0, 6, ROWS)], 0.2)),
        }
    )


def make_policy(**changes):
    columns = (
        ColumnRule("age", Role.QUASI),
        ColumnRule("zip", Role.QUASI, recoding="set"),
        ColumnRule("born", Role.QUASI, at_least="month"),
        ColumnRule("height", Role.QUASI, weight=2.0),
        ColumnRule("disease", Role.SENSITIVE),
    )
    models = (ModelSpec("k-anonymity", {"k": 4}), ModelSpec("l-diversity", {"l": 2}))
    given = {"columns": columns, "models": models, "algorithm": "mondrian", **changes}
    return Policy(table=TableName("public", "t"), **given)


def counted(rows):
    found = {}
    for name in rows.column_names:
        counts = rows[name].combine_chunks().value_counts()
        values = counts.field("values").dictionary_encode()
        found[name] = pa.table({"rows": counts.field("counts"), "value": values})
    return found


def domains(rows, policy):
    return domains_of(counted(rows), policy, kinds=KINDS, taxonomies={})


def places(known, rows):
    return {
        name: known.values[name].places(rows[name].combine_chunks()).to_numpy()
        for name in known.values
    }


def test_a_part_is_encoded_as_it_is_within_the_whole(rows):
    policy = make_policy()
    whole = encode(rows, policy, kinds=KINDS, taxonomies={})
    some = np.arange(0, ROWS, 7)
    known = domains(rows, policy)
    part = known.encoded(places(known, rows.take(some)), class_label=None)
    for expected, found in zip(whole.quasi, part.quasi, strict=True):
        assert expected.size == found.size
        assert expected.codes[some].tolist() == found.codes.tolist()
        assert expected.values.tolist() == found.values.tolist()
    assert whole.sensitive[some].tolist() == part.sensitive.tolist()
    assert whole.domains[0].labels == part.domains[0].labels


def test_a_part_is_compared_with_the_whole(rows):
    policy = make_policy(models=(ModelSpec("t-closeness", {"t": 0.2}),))
    whole = encode(rows, policy, kinds=KINDS, taxonomies={})
    known = domains(rows, policy)
    part = known.encoded(places(known, rows.slice(0, 50)), class_label=None)
    (expected,) = wholes(whole, demands_of(whole, policy), np.arange(ROWS))
    (found,) = wholes(part, demands_of(part, policy), np.arange(50))
    assert expected.share.tolist() == found.share.tolist()
    assert expected.n_rows == found.n_rows == ROWS


def test_a_value_that_the_whole_has_not_is_refused(rows):
    known = domains(rows.slice(0, 20), make_policy())
    with pytest.raises(DatabaseError, match="a value that the table has not"):
        places(known, rows)


def cut(rows, policy, *, rows_per_block):
    known = domains(rows, policy)
    sample = known.encoded(places(known, rows), class_label=None)
    asked = Requirement(policy.k, policy.l, 0.0, demands_of(sample, policy))
    root = cut_regions(
        sample, known, asked, rows_per_block=rows_per_block, seed=0, until=lambda: False
    )
    return known, sample, root


def within(sample, region):
    codes = sample.codes
    return np.flatnonzero(((region.lo <= codes) & (codes <= region.hi)).all(axis=1))


@pytest.mark.exhaustive
def test_each_row_is_in_one_region_of_about_so_many_rows(rows):
    _, sample, root = cut(rows, make_policy(), rows_per_block=500)
    leaves = list(root.leaves())
    found = [within(sample, leaf) for leaf in leaves]
    assert sorted(np.concatenate(found).tolist()) == list(range(ROWS))
    assert max(map(len, found)) <= 500
    assert min(map(len, found)) >= 500 / 4
    assert all(root.parent_of(leaf) is not None for leaf in leaves)


def test_the_rows_of_each_region_are_those_with_its_values(rows):
    known, sample, root = cut(rows, make_policy(), rows_per_block=500)
    small = places(known, rows)
    assert {np.dtype("uint8"), np.dtype("uint16")} == {place.dtype for place in small.values()}
    found = dict(rows_within(root, known, small, np.arange(ROWS)))
    assert list(root.leaves()) == list(found)
    for leaf, own in found.items():
        assert own.tolist() == within(sample, leaf).tolist()


def test_a_region_that_would_not_meet_the_models_is_not_cut_off(rows):
    alike = pa.array(
        ["d0" if (age or 0) < 60 else f"d{age % 6}" for age in rows["age"].to_pylist()]
    )
    only_age = rows.select(["age"]).append_column("disease", alike)
    columns = (ColumnRule("age", Role.QUASI), ColumnRule("disease", Role.SENSITIVE))
    _, sample, root = cut(only_age, make_policy(columns=columns), rows_per_block=500)
    regions = [within(sample, leaf) for leaf in root.leaves()]
    assert min(len(np.unique(sample.sensitive[region])) for region in regions) >= 2
    assert max(map(len, regions)) > 500


@pytest.mark.exhaustive
def test_what_is_joined_costs_what_it_costs_in_one_piece(rows):
    policy = make_policy()
    known, sample, root = cut(rows, policy, rows_per_block=700)
    placed, parts = [], []
    for leaf in root.leaves():
        own = within(sample, leaf)
        placed.append(own)
        parts.append(group_rows(sample.take(own), policy, seed=0, stages=Stages()))
    order = np.concatenate(placed)
    joined = join(parts, [], known, sample.sensitive[order], policy=policy)
    group = np.empty(ROWS, np.int32)
    group[order] = joined.assignment.group
    assignment = Assignment(group, joined.assignment.n_groups)
    values = published_values(sample, assignment)
    expected = report(publication(sample, assignment, values, k=policy.k), METRICS)
    assert expected.n_classes == joined.loss.n_classes
    assert expected.smallest_class == joined.loss.smallest_class >= 4
    assert expected.ncp == pytest.approx(joined.loss.ncp)
    of_parts = sum(part.ncp * len(part.group) for part in parts) / ROWS
    assert of_parts == pytest.approx(joined.loss.ncp)
    assert expected.columns == pytest.approx(joined.loss.columns)
    assert set(expected.metrics) - set(joined.loss.metrics) <= OF_ROWS
    for name, value in joined.loss.metrics.items():
        assert expected.metrics[name] == pytest.approx(value), name


@pytest.mark.parametrize(
    ("models", "n_rows"),
    exhaustive_after(1, [((), ROWS), ((ModelSpec("t-closeness", {"t": 0.4}),), ROWS // 3)]),
)
def test_groups_of_several_regions_are_improved_and_still_meet_the_models(rows, models, n_rows):
    policy = make_policy(algorithm="auto", params={"effort": "fast"})
    policy = replace(policy, models=(*policy.models, *models))
    _, sample, root = cut(rows.slice(0, n_rows), policy, rows_per_block=n_rows // 4)
    before, first = np.empty(n_rows, np.int32), 0
    for leaf in root.leaves():
        own = within(sample, leaf)
        found = grouped(sample.take(own), policy)
        before[own] = found.group + np.int32(first)
        first += len(found.lo)
    better = improve_border(sample, before, policy, seed=0)
    assert better is not None
    assert better.sizes.sum() == n_rows
    assert better.sizes.min() >= 4
    ncp = [
        report(publication(sample, one, published_values(sample, one), k=4), {}).weighted_ncp
        for one in (Assignment(before, first), Assignment(better.group, len(better.lo)))
    ]
    assert ncp[1] < ncp[0]


@pytest.mark.exhaustive
def test_the_costliest_groups_are_those_at_the_border(rows):
    policy = make_policy(algorithm="auto", params={"effort": "fast"})
    known = domains(rows, policy)
    table = known.encoded(places(known, rows.slice(0, 400)), class_label=None)
    groups = grouped(table, policy)
    border = border_of(table, groups, policy)
    assert 0 < len(border) <= 20
    held = np.bincount(groups.group[border], minlength=len(groups.lo))
    assert set(held) <= {0, *groups.sizes}
    assert len(border_of(table, groups, replace(policy, algorithm="mondrian", params={}))) == 0


def grouped(table, policy):
    return group_rows(table, policy, seed=0, stages=Stages())
