"""Files of pages: written whole, in place of what was there."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dbanon.cli.pages.files import require, write
from dbanon.cli.pages.report import render
from dbanon.domain.errors import ConfigError

MARK = '<meta name="generator" content="dbanon 0.1.0">'
BEFORE = f"<!DOCTYPE html>\n{MARK}"


def test_a_page_takes_the_place_of_the_one_before(tmp_path, report):
    path = tmp_path / "report.html"
    now = render(replace(report, readers=("m\u00e9decins",)))
    write(render(report), path)
    write(now, path)
    assert path.read_bytes() == now.encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_is_written_where_a_file_has_one_name(tmp_path, monkeypatch):
    def one_name(*_, **__):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", one_name)
    path = tmp_path / "report.html"
    write("now", path)
    assert [("report.html", "now")] == [(one.name, one.read_text()) for one in tmp_path.iterdir()]


def test_nothing_is_left_where_a_page_cannot_take_its_place(tmp_path, monkeypatch):
    def busy(*_):
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    with pytest.raises(ConfigError, match="busy"):
        write("now", tmp_path / "report.html")
    assert [] == list(tmp_path.iterdir())


def test_what_cannot_be_read_is_told_as_that(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text(BEFORE)

    def locked(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", locked)
    with pytest.raises(ConfigError, match=r"report.html cannot be read \(Permission denied\)"):
        require(path, example="report.html")


def test_a_link_stays_one(tmp_path):
    target, link = tmp_path / "kept.html", tmp_path / "report.html"
    target.write_text(BEFORE)
    link.symlink_to(target)
    write("now", link)
    assert link.is_symlink()
    assert target.read_text() == "now"


def test_what_was_there_stays_when_the_page_cannot_be_written(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write(BEFORE, path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left") as found:
        write("now", path)
    assert found.value.hint == "--html another/report.html"
    assert path.read_text() == BEFORE
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_has_the_rights_of_any_new_file(tmp_path):
    path = tmp_path / "report.html"
    before = os.umask(0o027)
    try:
        write("now", path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_notes_that_quote_a_page_stay_as_they_are(tmp_path):
    (tmp_path / "report.html").write_text(f"How a page begins: {MARK}")
    with pytest.raises(ConfigError, match="no page"):
        require(tmp_path / "report.html", example="report.html")


@pytest.mark.parametrize("there", ["a file", "a link to a file", "a link to nothing"])
def test_what_is_no_page_stays_as_it_is(tmp_path, there):
    path, other = tmp_path / "report.html", tmp_path / "kept"
    if there == "a file":
        path.write_text("kept")
    else:
        path.symlink_to(other)
    if there == "a link to a file":
        other.write_text("kept")
    before = sorted((one.name, one.is_symlink()) for one in tmp_path.iterdir())
    for refused in (lambda: require(path, example="report.html"), lambda: write(BEFORE, path)):
        with pytest.raises(ConfigError, match=r"report.html is a (file that is no page|link to n)"):
            refused()
    assert sorted((one.name, one.is_symlink()) for one in tmp_path.iterdir()) == before
    assert not path.exists() or path.read_text() == "kept"


def test_a_file_that_comes_meanwhile_stays_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    monkeypatch.setattr(os, "fsync", lambda _: path.write_text("kept"))
    with pytest.raises(ConfigError, match="File exists"):
        write(BEFORE, path)
    assert path.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [path]


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
