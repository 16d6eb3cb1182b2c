"""Reports that were written as JSON, or by anything else."""

import pytest

from dbanon.actions.releases import differences
from dbanon.domain.errors import ConfigError

EMPTY = {"checks": {}, "loss": {}, "risk": {}, "utility": {}}


def test_what_nests_without_end_is_no_report(tmp_path):
    path = tmp_path / "before.json"
    path.write_text(100_000 * "[")
    with pytest.raises(ConfigError, match="holds no report"):
        differences.read(path)


def test_names_that_are_no_texts_are_told_as_they_are():
    before = EMPTY | {"utility": [{"columns": ["age", 1], "distance": 0.5}]}
    (found,) = differences.compare(before, EMPTY)
    assert ("utility [age, 1] distance", 0.5, None) == (found.figure, found.before, found.now)
