"""Files of pages and drawings: written whole, in place of their own kind only."""

import os
import sys
from pathlib import Path

import pytest

from dbanon.cli.terminal import plot
from dbanon.domain.errors import ConfigError
from dbanon.pages import files
from dbanon.pages.files import DRAWING, PAGE
from dbanon.pages.rendering import require

MARK = '<meta name="generator" content="dbanon 0.1.0">'
BEFORE = f"<!DOCTYPE html>\n{MARK}"
DRAWN = {
    ".svg": b"<?xml><dc:title>dbanon 0.1.0</dc:title>",
    ".png": b"\x89PNG Software\0dbanon 0.1.0",
    ".pdf": b"%PDF-1.4 /Creator (dbanon 0.1.0)",
}


def write(text, path):
    files.write(text.encode(), path, PAGE)


def test_a_page_takes_the_place_of_the_one_before(tmp_path):
    path = tmp_path / "report.html"
    now = f"{BEFORE}m\u00e9decins"
    write(BEFORE, path)
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


@pytest.mark.parametrize("suffix", DRAWN)
def test_a_drawing_takes_the_place_of_one_and_of_nothing_else(tmp_path, suffix):
    path, other = tmp_path / f"loss{suffix}", tmp_path / "kept"
    files.write(DRAWN[suffix], path, DRAWING)
    files.write(DRAWN[suffix] + b" now", path, DRAWING)
    assert DRAWN[suffix] + b" now" == path.read_bytes()
    path.unlink()
    other.write_bytes(DRAWN[suffix].replace(b"dbanon", b"another"))
    path.symlink_to(other)
    for refused in (
        lambda: plot.require(path, example="loss.svg"),
        lambda: files.write(DRAWN[suffix], path, DRAWING),
    ):
        with pytest.raises(ConfigError, match="is a file that is no drawing of dbanon") as found:
            refused()
        assert f"--plot another/loss{suffix}" == found.value.hint
    assert b"another" in other.read_bytes()


@pytest.mark.parametrize(("name", "kind"), [("report.html", PAGE), ("loss.svg", DRAWING)])
def test_only_its_owner_may_read_a_file_that_may_hold_counts_of_the_source(tmp_path, name, kind):
    path = tmp_path / name
    before = os.umask(0o000)
    try:
        files.write(BEFORE.encode() if kind is PAGE else DRAWN[".svg"], path, kind)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
        files.write(b"now", path, kind)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


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
