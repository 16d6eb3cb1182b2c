"""Due times of schedules: cron expressions of five fields, in a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dbanon.domain.errors import ConfigError
from dbanon.domain.text import visible

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

_FIELDS = 5  # a sixth would be seconds
_LONGEST = 200
_HINT = "write minute, hour, day of month, month and day of week: '15 3 * * *'"


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression as in Debian's cron, in a time zone such as ``Europe/Berlin``.

    Raises ConfigError if one is invalid, or if no time ever matches.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        from datetime import datetime

        known = _zone(self.zone)
        if len(self.expression) > _LONGEST or len(self.expression.split()) != _FIELDS:
            raise ConfigError("a cron expression has five fields", hint=_HINT)
        if _first(self._times(datetime.now(known), reverse=False)) is None:
            raise ConfigError(f"{self._seen()} never comes", hint=_HINT)

    def last(self, now: datetime) -> datetime | None:
        """Return the newest time at or before a moment, None if there is none."""
        # From a moment within a second backwards, the library begins with the second itself.
        start = now.replace(microsecond=now.microsecond or 1)
        return _first(self._times(start, reverse=True))

    def next(self, now: datetime) -> datetime | None:
        """Return the first time after a moment."""
        return _first(self._times(now, reverse=False))

    def _times(self, start: datetime, *, reverse: bool) -> CronSim:
        from cronsim import CronSim, CronSimError

        try:
            return CronSim(self.expression, start.astimezone(_zone(self.zone)), reverse=reverse)
        except CronSimError as error:
            reason = str(error).replace("Bad ", "")
            raise ConfigError(
                f"{self._seen()} is no cron expression: {visible(reason)}", hint=_HINT
            ) from None

    def _seen(self) -> str:
        return repr(visible(" ".join(self.expression.split())))


def _first(times: CronSim) -> datetime | None:
    found = next(times, None)
    return None if found is None else found.astimezone(UTC)


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            f"{visible(name)!r} is no time zone of this machine",
            hint="name one such as Europe/Berlin, or leave it out for UTC",
        ) from None
