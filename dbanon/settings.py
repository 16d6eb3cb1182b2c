"""Where the database is and who dbanon is in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from dbanon.domain.errors import ConfigError

LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", "PGDATABASE", "PGUSER")


def default_home() -> Path:
    """Return where the embedded server lives: DBANON_HOME, or the platform's data folder.

    Root's server runs under an account of its own, which reaches /var/lib but not /root.
    """
    named = os.environ.get("DBANON_HOME")
    if named:
        return Path(named).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/dbanon")
    from platformdirs import user_data_path

    return user_data_path("dbanon")


@dataclass(frozen=True, slots=True)
class Settings:
    """What one command works with.

    ``dsn`` is a postgresql:// URI or key=value conninfo and may hold a password, so it is never
    shown; "" leaves everything to libpq's own variables, None means the embedded server.
    ``owner`` is the role that is to own what dbanon creates. ``home`` holds the embedded server.
    Raises ConfigError for a dsn that is neither form.
    """

    dsn: str | None = field(default=None, repr=False)
    owner: str | None = None
    allow_superuser: bool = False
    home: Path = field(default_factory=default_home)

    def __post_init__(self) -> None:
        if self.dsn and "=" not in self.dsn and not _is_uri(self.dsn):
            raise ConfigError(
                "the dsn is neither a postgresql:// URI nor key=value pairs",
                hint="write it as postgresql://user@host/dbname or 'host=... dbname=...'",
            )

    @classmethod
    def load(
        cls,
        *,
        dsn: str | None = None,
        owner: str | None = None,
        allow_superuser: bool = False,
        home: Path | None = None,
    ) -> Settings:
        """Combine flags, DBANON_* and libpq's variables, the first that is set winning.

        An empty variable counts as not set. Raises ConfigError as the constructor does.
        """
        if dsn is None:
            dsn = os.environ.get("DBANON_DSN") or None
        if dsn is None and any(os.environ.get(name) for name in LIBPQ_VARIABLES):
            dsn = ""
        return cls(
            dsn=dsn,
            owner=owner or os.environ.get("DBANON_OWNER") or None,
            allow_superuser=allow_superuser,
            home=default_home() if home is None else home.expanduser().absolute(),
        )


def _is_uri(dsn: str) -> bool:
    return dsn.startswith(("postgresql://", "postgres://"))
