"""Settings of the database connection and of dbanon's role in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from dbanon.domain.errors import ConfigError

LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", "PGDATABASE", "PGUSER")


def default_home() -> Path:
    """Return the folder of the embedded server: DBANON_HOME, or the platform's data folder.

    Root's server has its own account, which can reach /var/lib but not /root.
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
    """Settings of a command.

    ``dsn``: postgresql:// URI or key=value conninfo; it may hold a password, so it is never
    printed. "" leaves everything to libpq's variables, None selects the embedded server in
    ``home``. ``owner``: role that owns the objects that dbanon creates. Raises ConfigError for a
    dsn of another form.
    """

    dsn: str | None = field(default=None, repr=False)
    owner: str | None = None
    allow_superuser: bool = False
    home: Path = field(default_factory=default_home)

    def __post_init__(self) -> None:
        is_uri = (self.dsn or "").startswith(("postgresql://", "postgres://"))
        if self.dsn and "=" not in self.dsn and not is_uri:
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
        """Combine flags, DBANON_* and libpq's variables, in this order of precedence.

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
