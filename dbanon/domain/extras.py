"""Libraries of extras, and the error if one is missing, raised before any data is read."""

from __future__ import annotations

from importlib.util import find_spec

from dbanon.domain.errors import ConfigError

# Each library by module name: its title, and the extra that installs it.
LIBRARIES = {
    "distributed": ("the library distributed", "dask"),
    "jinja2": ("Jinja2", "report"),
    "matplotlib": ("matplotlib", "plot"),
    "networkx": ("NetworkX", "textbook"),
    "pandas": ("pandas", "pandas"),
    "sklearn": ("scikit-learn", "textbook"),
}


def require(library: str, *, what: str, extra: str | None = None, also: str = "") -> None:
    """Raise ConfigError, with the install command, unless a library is installed.

    what: feature that needs it; extra: alternative extra; also: rest of the hint.
    """
    if not _is_installed(library):
        title, usual = LIBRARIES[library]
        raise ConfigError(
            f"{what} needs {title}, which is not installed",
            hint=f"{install(extra or usual)}{also}",
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
