"""What a worker shows to Prometheus and to whoever asks after its health, on this machine only."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from dbanon.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dbanon.actions.jobs.vitals import Vitals
    from dbanon.db.jobs.queue import Standing
    from dbanon.domain.table import TableName

_ADDRESS = "127.0.0.1"
_SECONDS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep requests off stderr, which is for what is not well."""


class Metrics:
    """Counts of this worker's jobs by table, and how the jobs of each table stand by the database.

    The library escapes whatever is in the name of a table.
    """

    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals
        self._shown: set[str] = set()
        self._registry = CollectorRegistry()
        self._jobs = Counter(
            "dbanon_jobs",
            "Attempts at jobs that this worker ended, by result.",
            ["table", "result"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "dbanon_job_seconds",
            "How long attempts took.",
            ["table"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        gauges = {
            "dbanon_last_success_timestamp_seconds": "When a job of the table last succeeded.",
            "dbanon_last_job_failed": "Whether the job that was begun last has failed for good.",
            "dbanon_jobs_waiting": "Jobs that wait, those to be tried again included.",
            "dbanon_jobs_running": "Jobs that a worker has taken.",
        }
        self._gauges = {
            name: Gauge(name, text, ["table"], registry=self._registry)
            for name, text in gauges.items()
        }

    def count(self, table: TableName, *, result: str, seconds: float) -> None:
        """Enter what became of a job."""
        self._jobs.labels(str(table), result).inc()
        self._seconds.labels(str(table)).observe(seconds)

    def show(self, standing: Iterable[Standing]) -> None:
        """Show how the jobs of each table stand."""
        shown = set()
        for one in standing:
            shown.add(str(one.table))
            at = None if one.succeeded_at is None else one.succeeded_at.timestamp()
            values = (at, one.state == "failed", one.waiting, one.running)
            for gauge, value in zip(self._gauges.values(), values, strict=True):
                if value is not None:
                    gauge.labels(str(one.table)).set(value)
        for table in self._shown - shown:
            for gauge in self._gauges.values():
                with suppress(KeyError):  # a table without a success
                    gauge.remove(table)
        self._shown = shown

    @contextmanager
    def served(self, port: int) -> Iterator[None]:
        """Answer /metrics and /healthz during the block; raises ConfigError for a port in use."""
        try:
            server = make_server(_ADDRESS, port, self._answer, ThreadingWSGIServer, _Silent)
        except OSError as error:
            raise ConfigError(
                f"port {port} cannot be opened: {error.strerror}", hint="--metrics-port 9465"
            ) from None
        with server:
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()

    def _answer(self, asked: dict[str, Any], start: Callable[..., Any]) -> Sequence[bytes]:
        if asked["PATH_INFO"] == "/metrics":
            found: Sequence[bytes] = make_wsgi_app(self._registry)(asked, start)
            return found
        if asked["PATH_INFO"] != "/healthz":
            status, text = "404 Not Found", "there are /metrics and /healthz"
        elif (ails := self._vitals.ails()) is not None:
            status, text = "503 Service Unavailable", ails
        else:
            status, text = "200 OK", "well"
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode()]
