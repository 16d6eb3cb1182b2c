"""The version and the commit that are named in reports of problems."""

import re
import subprocess
import tomllib

import pytest
from pages import ROOT

from dbanon import resources

COMMIT = "0123456789abcdef0123456789abcdef01234567"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


@pytest.fixture
def git(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "dbanon")
    folder = tmp_path / ".git"
    folder.mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def test_the_commit_of_a_branch_is_found(git):
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
    assert COMMIT == resources.commit()


def test_the_commit_of_a_packed_branch_is_found(git):
    (git / "packed-refs").write_text(
        f"# pack-refs\n{'f' * 40} refs/heads/my/main\n{COMMIT} refs/heads/main\n"
    )
    assert COMMIT == resources.commit()


def test_a_commit_without_a_branch_is_found(git):
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert COMMIT == resources.commit()


def test_the_commit_of_a_worktree_is_found(git, tmp_path, monkeypatch):
    own = git / "worktrees" / "one"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/topic\n")
    (own / "commondir").write_text("../..\n")
    (git / "packed-refs").write_text(f"{COMMIT} refs/heads/topic\n")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".git").write_text(f"gitdir: {own}\n")
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "one" / "dbanon")
    assert COMMIT == resources.commit()


def test_without_a_checkout_or_with_an_unknown_format_there_is_no_commit(git, monkeypatch):
    assert resources.commit() is None
    (git / "packed-refs").write_text("# pack-refs\n")
    assert resources.commit() is None
    monkeypatch.setattr(resources, "_PACKAGE", git / "dbanon")
    assert resources.commit() is None


def test_git_names_the_same_commit():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    command = ["/usr/bin/env", "git", "rev-parse", "HEAD"]
    named = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if named.returncode:
        pytest.skip("no git, or a repository of another user")
    assert named.stdout.strip() == resources.commit()


def test_pages_the_changelog_and_the_citation_name_the_version_of_the_project():
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    number = ".".join(VERSION.split(".")[:2])
    for name in ("README.md", "docs/index.md"):
        assert f"Version {number} is" in (ROOT / name).read_text("utf-8")
    assert re.search(
        rf"^## \[{re.escape(VERSION)}\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
