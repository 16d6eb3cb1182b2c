"""Files of pages: written whole, in place of what was there."""

import os
import sys

import pytest

from dbanon.cli.pages.files import require, write
from dbanon.domain.errors import ConfigError


def test_a_page_takes_the_place_of_the_one_before(tmp_path):
    path = tmp_path / "report.html"
    write("before", path)
    write("\u00e9\n", path)
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one(tmp_path):
    target, link = tmp_path / "kept.html", tmp_path / "report.html"
    target.write_text("before")
    link.symlink_to(target)
    write("now", link)
    assert link.is_symlink()
    assert target.read_text() == "now"


def test_what_was_there_stays_when_the_page_cannot_be_written(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write("before", path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left") as found:
        write("now", path)
    assert found.value.hint == "--html another/report.html"
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_has_the_rights_of_any_new_file(tmp_path):
    path = tmp_path / "report.html"
    before = os.umask(0o027)
    try:
        write("now", path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "message"),
    [("report.pdf", "is no page"), ("none/report.html", "no folder"), ("folder.html", "no file")],
)
def test_what_cannot_be_written_is_told_before(tmp_path, name, message):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ConfigError, match=message):
        require(tmp_path / name, example="report.html")


def test_without_jinja_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ConfigError, match="Jinja2") as found:
        require(tmp_path / "report.html", example="report.html")
    assert found.value.hint == "pip install 'dbanon[report]'"
