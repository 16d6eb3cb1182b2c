"""Files that are named on a command line and cannot be read: what is said, and what to do."""

import re

import pytest

from dbanon.actions import publish
from dbanon.actions.preparation.loading import given
from dbanon.actions.releases import report
from dbanon.domain.errors import DbanonError
from dbanon.formats.taxonomies import read_csv

READERS = {
    "policy": given,
    "dataset": publish.dataset_of,
    "report": report.read,
    "taxonomy": lambda path: read_csv(path, name="t"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_file_of_utf_16_is_named_as_that_with_what_converts_it(read, tmp_path):
    path = tmp_path / "windows.txt"
    path.write_text("table = 1", encoding="utf-16")
    with pytest.raises(DbanonError, match=r"windows\.txt is UTF-16, and not UTF-8") as caught:
        read(path)
    assert caught.value.hint.startswith("iconv -f utf-16 -t utf-8 ")


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "cannot read .*none: No such file or directory"),
        (".", "cannot read .*: Is a directory"),
        ("latin", r"latin is not UTF-8 \(at byte 0\)"),
    ],
)
def test_it_is_said_in_words_why_a_file_cannot_be_read_and_what_to_do(read, name, said, tmp_path):
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(DbanonError, match=said) as caught:
        read(tmp_path / name)
    assert "Error" not in str(caught.value)
    assert caught.value.hint
    assert not re.search(f"> *{re.escape(name)}", caught.value.hint)  # which would empty it
