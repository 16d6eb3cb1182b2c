"""What draws random numbers, and what for: a generator that anybody can repeat hides nobody."""

import re
from enum import Enum
from pathlib import Path

import dbanon

ROOT = Path(dbanon.__file__).parents[1]


class Purpose(Enum):
    """What random numbers decide."""

    SEARCH = "which groups are tried"
    REPORT = "which rows, queries and guesses a report or an attack looks at"
    DEMO = "made-up rows"
    WAIT = "how long a worker waits"
    NAME = "a name that nobody else takes"
    HIDING = "who is published, next to whom, in which order, and with which noise"
    ACCESS = "who may open a page"


ALLOWED = {
    "dbanon/actions/distribution/executors.py": (Purpose.NAME, {"uuid4"}),
    "dbanon/actions/jobs/worker.py": (Purpose.WAIT, {"random."}),
    "dbanon/actions/plan.py": (Purpose.REPORT, {"default_rng"}),
    "dbanon/actions/releases/report.py": (Purpose.REPORT, {"default_rng"}),
    "dbanon/actions/server.py": (Purpose.DEMO, {"default_rng"}),
    "dbanon/anonymization/algorithms/clustering/growth.py": (Purpose.SEARCH, {"default_rng"}),
    "dbanon/anonymization/algorithms/clustering/partitional.py": (
        Purpose.SEARCH,
        {"default_rng", "random_state"},
    ),
    "dbanon/anonymization/algorithms/microaggregation/microaggregation.py": (
        Purpose.SEARCH,
        {"default_rng"},
    ),
    "dbanon/anonymization/algorithms/partitioning/mondrian.py": (
        Purpose.SEARCH,
        {"default_rng"},
    ),
    "dbanon/anonymization/attacks/registry.py": (Purpose.REPORT, {"default_rng"}),
    "dbanon/anonymization/attacks/pair.py": (Purpose.REPORT, {"default_rng"}),
    "dbanon/anonymization/auto/distribution_cuts.py": (Purpose.SEARCH, {"default_rng"}),
    "dbanon/anonymization/auto/start.py": (Purpose.SEARCH, {"default_rng"}),
    "dbanon/anonymization/auto/rounds.py": (Purpose.SEARCH, {"default_rng"}),
    "dbanon/anonymization/estimate.py": (Purpose.REPORT, {"default_rng"}),
    "dbanon/anonymization/masking/noise.py": (Purpose.HIDING, {"secrets."}),
    "dbanon/anonymization/utility/measure.py": (Purpose.REPORT, {"random_state"}),
    "dbanon/pages/files.py": (Purpose.NAME, {"secrets."}),
    "dbanon/db/person_hashes.py": (Purpose.NAME, {"uuid4"}),
    "dbanon/db/releases/replacements.py": (Purpose.HIDING, {"secrets.", "SystemRandom"}),
    "dbanon/domain/chance.py": (Purpose.HIDING, {"urandom"}),
    "dbanon/kernels/auto/carving.py": (Purpose.SEARCH, {"make_dice"}),
    "dbanon/kernels/auto/improve.py": (Purpose.SEARCH, {"make_dice"}),
    "dbanon/kernels/auto/pools.py": (Purpose.SEARCH, {"make_dice"}),
    "dbanon/kernels/random.py": (Purpose.SEARCH, {"make_dice"}),
    "dbanon/studio/gate.py": (Purpose.ACCESS, {"secrets."}),
    "dbanon/studio/jobs.py": (Purpose.ACCESS, {"secrets."}),
    "sql/histories.sql: create_key": (Purpose.HIDING, {"gen_random_uuid"}),
    # They store and read the seed of the search.
    "sql/metadata.sql: add_release": (Purpose.SEARCH, {"seed"}),
    "sql/metadata.sql: releases": (Purpose.SEARCH, {"seed"}),
    "sql/releases.sql: random_order": (Purpose.HIDING, {"gen_random_uuid"}),
}
SECRET = {"SystemRandom", "urandom", "secrets.", "gen_random_uuid"}
IN_PYTHON = re.compile(
    r"default_rng|\b(?:uuid[14]|make_dice|random_state|urandom|SystemRandom|RandomState"
    r"|SeedSequence|PCG64|MT19937|Philox)\b|\b(?:np\.random|(?<![\w.])random|secrets)\.(?=\w)"
)
IN_SQL = re.compile(
    r"gen_random_\w+|uuid_generate_\w+|(?i:\b(?:set)?seed\b|\brandom\w*\(|tablesample)"
)


def parts(path):
    """Yield the name and the text of a file, of SQL of each statement that has a name in it."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text()
    first, *others = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    yield name, first
    for statement, its in zip(others[::2], others[1::2], strict=True):
        yield f"{name}: {statement}", its


def generators(name, text):
    """Return the names of what draws random numbers in a text, but for annotations and comments."""
    if ".sql" in name:
        text = re.sub(r"--.*", "", text)
        return {found[0].lower() for found in IN_SQL.finditer(text)}
    text = re.sub(r"np\.random\.(Generator|default_rng)", r"\1", text)
    text = re.sub(r'"""(?s:.*?)"""|#.*', "", text)
    found = {match[0] for match in IN_PYTHON.finditer(text)}
    return found if re.search(r"^import random$", text, re.MULTILINE) else found - {"random."}


def found():
    """Return the generators of each file that has some."""
    files = [*(ROOT / "dbanon").rglob("*.py"), *(ROOT / "sql").rglob("*.sql")]
    each = {name: generators(name, text) for path in sorted(files) for name, text in parts(path)}
    return {name: names for name, names in each.items() if names}


def test_every_generator_is_listed_with_what_it_is_for():
    assert {path: names for path, (_, names) in ALLOWED.items()} == found()


def test_what_hides_persons_and_pages_draws_from_the_system():
    secret = {Purpose.HIDING, Purpose.ACCESS}
    hiding = {path: names for path, (for_, names) in ALLOWED.items() if for_ in secret}
    assert {for_ for for_, _ in ALLOWED.values()} >= secret
    assert all(names <= SECRET for names in hiding.values())


def test_a_seed_reaches_searches_reports_and_nothing_else():
    """The rows of a person, the buckets of anatomy and masked values are drawn without one."""
    text = (ROOT / "dbanon/actions/preparation/masking.py").read_text()
    assert not re.search(r"\bseed\b", text)
    assert "seed" not in (ROOT / "dbanon/anonymization/buckets.py").read_text()
