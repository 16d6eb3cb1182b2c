"""The one place that knows where the SQL, the migrations and the demo data are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    bundled = _PACKAGE / "_bundled" / name
    return bundled if bundled.is_dir() else _PACKAGE.parent / name


def migrations() -> Path:
    """Return the folder of the Alembic environment."""
    return _folder("migrations")


@cache
def sql(kind: str, name: str) -> str:
    """Return the text of ``sql/<kind>/<name>.sql``.

    kind: a folder, such as queries; name: with its family, such as ``catalog/columns``.
    """
    return (_folder("sql") / kind / f"{name}.sql").read_text(encoding="utf-8")


def sql_names(kind: str) -> tuple[str, ...]:
    """Return the names of the files of that kind, sorted."""
    folder = _folder("sql") / kind
    found = (path.relative_to(folder) for path in folder.rglob("*.sql"))
    return tuple(sorted(path.with_suffix("").as_posix() for path in found))


def data(name: str) -> Path:
    """Return the path of a file of the demo data."""
    return _PACKAGE / "data" / name
