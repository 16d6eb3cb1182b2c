"""Libraries that only an extra of dbanon installs, and the one error when one of them is missing.

Alone, as every layer may need one: an extra is checked before anything is read or computed.
"""

from __future__ import annotations

from importlib.util import find_spec

from dbanon.domain.errors import ConfigError

# Each library by the name of its module: what it is called, and the extra that installs it.
LIBRARIES = {
    "distributed": ("the library distributed", "dask"),
    "jinja2": ("Jinja2", "report"),
    "matplotlib": ("matplotlib", "plot"),
    "networkx": ("NetworkX", "textbook"),
    "pandas": ("pandas", "pandas"),
    "sklearn": ("scikit-learn", "textbook"),
}


def require(library: str, *, what: str, extra: str | None = None, also: str = "") -> None:
    """Raise ConfigError, with the command that installs it, unless a library is installed.

    what: what needs it; extra: another extra that installs it, too; also: the rest of the hint.
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
    """Look for a library without importing it: that takes long, and has effects of its own."""
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # of a finder that hides it
        return False
