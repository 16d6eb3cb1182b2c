"""Searches under strict models and large k: their tables, encoded, and what is asked of each.

``ward`` are 40 skewed values, the i-th most frequent 1 / i ** 1.1 as frequent as the first, drawn
without regard to anything else; ``field`` follows from the work of a person, a quasi-identifier.
``visits`` has ten rows of each person, which differ in three numbers; ``encounters`` has 47
quasi-identifiers.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from samples import people as people_samples
from samples.datasets import Dataset, encode_made, kind_of, load, read
from samples.distinct import TREES, make
from samples.encounters import ROWS as ENCOUNTERS
from samples.encounters import encoded_encounters
from samples.people import skewed
from samples.resampled import LARGE, SEED, draw
from samples.wide import encoded_wide

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dbanon.anonymization.problem import Problem

K, ROWS = 5, 100_000
WARDS_SKEW, ANSWERS = 1.1, 14
WARDS, DISTINCT_ROWS, PERSONS, EACH = 40, 65_000, 50_000, 10
MANY_CATEGORIES, CATEGORICAL_ROWS = 15, 10_000


class Shape(NamedTuple):
    """A table with what is asked of it: models beyond k, by name and parameters, and the bars.

    bars: by algorithm, percent of NCP and CPU seconds.
    """

    make: Callable[[int, Path], Dataset]
    rows: int
    k: int
    models: tuple[tuple[str, dict[str, object]], ...] = ()
    bars: dict[str, tuple[float, float]] = {}  # noqa: RUF012 - nobody changes it
    peers: tuple[str, ...] = ()


def resampled(rows: int, _: Path) -> Dataset:
    """Adult resampled, with intervals that are tight; its occupation and a ward are sensitive."""
    from dbanon import resources
    from dbanon.actions.demo import DATASETS
    from dbanon.anonymization.encoding.encode import encode
    from dbanon.formats import policies, taxonomies

    random = np.random.default_rng(SEED)
    source = draw(LARGE, read("adult"), rows, random)
    wards = np.array([f"ward {i:02}" for i in range(WARDS)])[
        skewed(WARDS, rows, random, exponent=WARDS_SKEW)
    ]
    source = source.append_column("ward", [wards])
    lines = ['table = "public.large"', "[models]", "k = 5", "[columns]"]
    lines += [f'{name}.role = "sensitive"' for name in (LARGE.protected, "ward")]
    for name in LARGE.quasi:
        shown = 'recoding = "interval"'
        if name not in LARGE.intervals:
            shown = f'recoding = "label", taxonomy = "adult_{name}"'
        lines.append(f'{name} = {{role = "quasi", {shown}}}')
    files = {tree: resources.data(file) for tree, file in DATASETS["adult"].taxonomies.items()}
    trees = {tree: taxonomies.read_csv(file, name=tree) for tree, file in files.items()}
    policy = policies.parse("\n".join(lines) + "\n")
    kinds = {field.name: kind_of(field.type) for field in source.schema}
    encoded = encode(source, policy, kinds=kinds, taxonomies=trees)
    return Dataset(source, encoded, policy, files)


def determined(rows: int, folder: Path) -> Dataset:
    """Distinct residents, whose field of work is sensitive and follows from their work."""
    import pyarrow as pa

    made, trees = make("register", rows), TREES["register"]
    columns = {
        column: np.array([path[0] for path in trees[column]])[values] if column in trees else values
        for column, values in made.items()
    }
    columns["field"] = np.array([path[1] for path in trees["work"]])[made["work"]]
    lines = ['table = "public.register"', "[models]", "k = 5", "[columns]"]
    lines.append('field.role = "sensitive"')
    for column in made:
        shown = 'recoding = "interval"'
        if column in trees:
            shown = f'recoding = "label", taxonomy = "register_{column}"'
        lines.append(f'{column} = {{role = "quasi", {shown}}}')
    return encode_made(pa.table(columns), "\n".join(lines) + "\n", trees, folder=folder)


def visits(rows: int, folder: Path) -> Dataset:
    """Rows of persons, ten of each in turn, that differ in their day, charge and days."""
    import pyarrow as pa

    random = np.random.default_rng((SEED, rows))
    persons = rows // EACH
    made = make("register", persons)
    trees = {name: TREES["register"][name] for name in ("postcode", "born", "sex")}
    columns = {
        name: np.repeat(np.array([path[0] for path in trees[name]])[made[name]], EACH)
        for name in trees
    }
    columns["age"] = np.repeat(made["age"], EACH)
    columns["day"] = random.integers(0, 730, rows)
    columns["days"] = np.minimum(random.geometric(0.2, rows), 90)
    columns["charge"] = np.minimum(40 * columns["days"] * random.lognormal(0, 0.7, rows), 9_999)
    columns["charge"] = columns["charge"].astype(np.int64)
    columns["person"] = np.repeat(np.arange(persons), EACH)
    lines = ['table = "public.visits"', 'subject = "person"', "[models]", "k = 5", "[columns]"]
    lines.append('person.role = "identifier"')
    for name in columns:
        if name == "person":
            continue
        shown = 'recoding = "interval"'
        if name in trees:
            shown = f'recoding = "label", taxonomy = "visits_{name}"'
        lines.append(f'{name} = {{role = "quasi", {shown}}}')
    return encode_made(pa.table(columns), "\n".join(lines) + "\n", trees, folder=folder)


def people(rows: int, folder: Path) -> Dataset:
    """The large table of people, of whom one of 14 skewed answers is sensitive."""
    import pyarrow as pa

    source = people_samples.make(rows).drop_columns([people_samples.PROTECTED])
    drawn = skewed(ANSWERS, rows, np.random.default_rng((SEED, rows)))
    source = source.append_column("answer", pa.array([f"answer {i:02}" for i in drawn]))
    text = people_samples.policy_text(k=5, l=1).replace(people_samples.PROTECTED, "answer")
    return encode_made(source, text, people_samples.trees(), folder=folder)


def adult(rows: int, _: Path) -> Dataset:
    return load("adult", rows=rows)


def categories(rows: int, folder: Path) -> Dataset:
    return encoded_wide(rows, MANY_CATEGORIES, folder, numbers=False)


OF_WARDS = {"columns": ("ward",)}
OF_WORK = {"columns": ("occupation",)}
SHAPES = {
    "entropy": Shape(
        resampled,
        ROWS,
        K,
        (("entropy-l-diversity", {"l": 10.0, **OF_WARDS}),),
        {"auto": (5.3, 15.0), "mondrian": (100.0, 5.0)},
        ("mondrian",),
    ),
    "closeness": Shape(
        resampled,
        ROWS,
        K,
        (("t-closeness", {"t": 0.2, **OF_WORK}),),
        {"auto": (34.0, 15.0)},
        ("mondrian",),
    ),
    "spread": Shape(
        people,
        ROWS,
        K,
        (("t-closeness", {"t": 0.2}),),
        {"auto": (34.0, 15.0)},
        ("mondrian",),
    ),
    "k = 1000": Shape(resampled, ROWS, 1_000, bars={"auto": (20.0, 12.0)}, peers=("mondrian",)),
    "determined": Shape(
        determined, DISTINCT_ROWS, K, (("l-diversity", {"l": 3}),), peers=("mondrian",)
    ),
    "persons": Shape(visits, PERSONS * EACH, K, peers=("k-member", "mondrian")),
    "encounters": Shape(encoded_encounters, ENCOUNTERS, K, peers=("mondrian",)),
    "categories": Shape(categories, CATEGORICAL_ROWS, K, peers=("k-member",)),
    **{
        f"Adult, k = {k}": Shape(adult, 30_162, k, bars={"auto": (bar, 10.0)})
        for k, bar in ((2, 0.78), (5, 2.32), (10, 3.72), (25, 6.25), (50, 8.70), (100, 12.0))
    },
}


def problem(shape: Shape, algorithm: str, *, rows: int | None, folder: Path) -> Problem:
    """Make the table of a shape, and what is to be solved with an algorithm or ``auto fast``."""
    from dbanon.anonymization.problem import Problem
    from dbanon.domain.policy import K_ANONYMITY, ModelSpec

    dataset = shape.make(rows or shape.rows, folder)
    name, _, effort = algorithm.partition(" ")
    params = {"auto": {"effort": effort or "balanced"}, "k-member": {"cost": "ncp"}}.get(name, {})
    models = [ModelSpec(K_ANONYMITY, {"k": shape.k})]
    models += [ModelSpec(model, params_of) for model, params_of in shape.models]
    policy = dataclasses.replace(
        dataset.policy, models=tuple(models), algorithm=name, params=params
    )
    if name == "k-member" and dataset.encoded.n_rows > CATEGORICAL_ROWS:
        policy = dataclasses.replace(policy, block=2_000)
    subjects = None
    if policy.subject is not None:
        subjects = np.unique(dataset.source[policy.subject].to_numpy(), return_inverse=True)[1]
        subjects = subjects.astype(np.int32)
    return Problem(dataset.encoded, policy, subjects)
