from __future__ import annotations

from pathlib import Path

import pytest

from dbanon.domain.errors import ConfigError
from dbanon.settings import LIBPQ_VARIABLES, Settings, default_home


def test_without_flags_and_variables_the_embedded_server_is_meant():
    assert Settings.load().dsn is None


def test_a_flag_wins_over_a_variable(monkeypatch):
    monkeypatch.setenv("DBANON_DSN", "dbname=variable")
    monkeypatch.setenv("DBANON_OWNER", "variable")
    monkeypatch.setenv("DBANON_HOME", "/variable")

    flags = Settings.load(dsn="dbname=flag", owner="flag", allow_superuser=True, home=Path("/flag"))

    expected = Settings("dbname=flag", "flag", allow_superuser=True, home=Path("/flag"))
    assert expected == flags


def test_variables_are_used_without_flags(monkeypatch):
    monkeypatch.setenv("DBANON_DSN", "dbname=variable")
    monkeypatch.setenv("DBANON_OWNER", "variable")
    monkeypatch.setenv("DBANON_HOME", "/variable")

    expected = Settings("dbname=variable", "variable", home=Path("/variable"))
    assert expected == Settings.load()


@pytest.mark.parametrize("name", LIBPQ_VARIABLES)
def test_any_variable_of_libpq_leaves_the_connection_to_libpq(monkeypatch, name):
    monkeypatch.setenv(name, "anything")

    assert Settings.load().dsn == ""


def test_dbanon_dsn_wins_over_the_variables_of_libpq(monkeypatch):
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("DBANON_DSN", "dbname=here")

    assert Settings.load().dsn == "dbname=here"


def test_an_empty_variable_is_not_set(monkeypatch):
    for name in (*LIBPQ_VARIABLES, "DBANON_DSN", "DBANON_OWNER"):
        monkeypatch.setenv(name, "")

    assert (None, None) == (Settings.load().dsn, Settings.load().owner)


@pytest.mark.parametrize(
    "dsn",
    ["postgresql://user:hunter2@host/db", "host=here password=hunter2", "postgres://u:hunter2@h"],
)
def test_a_password_is_never_shown(dsn):
    settings = Settings(dsn)

    assert "hunter2" not in f"{settings!r} {settings}"


@pytest.mark.parametrize("dsn", ["hunter2", "mysql://hunter2", "/hunter2"])
def test_a_dsn_of_neither_form_is_refused_without_being_shown(dsn):
    with pytest.raises(ConfigError) as refused:
        Settings(dsn)

    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        Settings().owner = "somebody"


def test_home_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DBANON_HOME", "~/of-the-user")

    assert tmp_path / "of-the-user" == default_home()
    assert tmp_path / "here" == Settings.load(home=Path("here")).home


def test_root_has_a_home_that_other_accounts_can_enter(monkeypatch):
    monkeypatch.delenv("DBANON_HOME")
    monkeypatch.setattr("os.geteuid", lambda: 0)

    assert Path("/var/lib/dbanon") == Settings().home


def test_an_ordinary_user_has_a_home_of_its_own(monkeypatch, tmp_path):
    monkeypatch.delenv("DBANON_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    assert Settings().home.is_relative_to(tmp_path)
    assert Settings().home.name == "dbanon"
