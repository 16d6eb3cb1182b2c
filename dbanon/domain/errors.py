"""Errors of the package.

    DbanonError                exit code 1
      ConfigError              settings, arguments and files
      DatabaseError            the server, a connection, a statement
        CommitUnknown          the connection was lost during a commit
        NotPermitted           a right is missing, or a role has one too many
        SchemaOutOfDate        the metadata schema is absent or of another version
        TableNotFound
      PolicyError              the policy does not describe the table
        DriftError             it did once, and no longer does (exit code 4)
          AccessDrift          and a reader of the release gained a right (NotPermitted as well)
      TaxonomyError
      Unsatisfiable            no partition of these rows meets the models
      CheckFailed              the published relation does not (exit code 3; in ``checks``)

A message describes the problem and its place; ``hint`` names the next command. Neither contains
cell values, passwords or keys.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar


class DbanonError(Exception):
    """A problem that the user can solve."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(DbanonError):
    """A setting, an argument or a file is wrong."""


class DatabaseError(DbanonError):
    """The server refused or could not be reached."""


class CommitUnknown(DatabaseError):
    """A commit was not answered; after any other error nothing was committed."""


class NotPermitted(DatabaseError):
    """A role lacks a right, or has one that it must not have."""


class SchemaOutOfDate(DatabaseError):
    """The metadata schema is absent, or of another version than this program."""


class TableNotFound(DatabaseError):
    """No such relation is visible."""


class PolicyError(DbanonError):
    """The policy is malformed, or does not describe the table."""


class DriftError(PolicyError):
    """The table or a taxonomy no longer matches the policy of the served release."""

    exit_code = 4


class AccessDrift(DriftError, NotPermitted):
    """A role that may read the served release can now also read what it hides."""


class TaxonomyError(DbanonError):
    """A taxonomy is malformed, missing, or lacks a value of its column."""


class Unsatisfiable(DbanonError):
    """No partition of these rows can meet the models."""


# Each library by module name: its title, and the extra that installs it.
LIBRARIES = {
    "faker": ("Faker", "replace"),
    "distributed": ("the library distributed", "dask"),
    "jinja2": ("Jinja2", "report"),
    "matplotlib": ("matplotlib", "plot"),
    "networkx": ("NetworkX", "textbook"),
    "pandas": ("pandas", "pandas"),
    "sklearn": ("scikit-learn", "textbook"),
    "starlette": ("Starlette", "studio"),
    "uvicorn": ("uvicorn", "studio"),
}


def require_library(library: str, *, what: str, extra: str | None = None, also: str = "") -> None:
    """Raise ConfigError, with the install command, unless a library is installed.

    what: feature that needs it; extra: alternative extra; also: rest of the hint.
    """
    if not _is_installed(library):
        title, usual = LIBRARIES[library]
        raise ConfigError(
            f"{what} needs {title}, which is not installed", hint=f"{install(extra or usual)}{also}"
        )


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'dbanon[{extra}]'"


def _is_installed(library: str) -> bool:
    """Look for a library without importing it, which is slow and has side effects."""
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # of a finder that hides it
        return False
