"""Publishing on a cluster of Dask: workers that are processes, lost workers, a lost scheduler."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.actions.distribution.executors import Cluster
from dbanon.domain.errors import ConfigError
from dbanon.domain.table import TableName

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

ROWS, BLOCK = 1_200, 400
ALONE = {
    "threads_per_worker": 1,
    "silence_logs": 50,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}
TABLE = TableName("public", "patients")
GUIDE = "docs/guides/several-machines.md"
ANEW = ("--new-series", "--recipients-changed")

# Tells which process has begun a block, and keeps it busy until there is a second file.
BUSY = """
import os, pathlib, time
from dbanon.actions.distribution import tasks
original = tasks.GroupBlock.perform
folder = pathlib.Path({folder!r})
def perform(self, job):
    (folder / str(os.getpid())).touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return original(self, job)
tasks.GroupBlock.perform = perform
"""


def define(database):
    make_patients(database, rows=ROWS)
    dbanon.set_policy(TABLE, patients_policy(TABLE), settings=database.settings)


def publish_in_one_piece(database):
    define(database)
    dbanon.publish("patients", settings=database.settings)


def shown(database):
    return sorted(database.execute("SELECT a::text FROM anon.patients AS a"))


def private_tables(database):
    return sorted(
        database.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'dbanon_data'::regnamespace"
        )
    )


@pytest.fixture(scope="module")
def cluster():
    """Two processes, and a scheduler in this one."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, **ALONE) as found:
        yield found


def run_everywhere(cluster, code):
    from distributed import Client

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.run(exec, code, {})


@pytest.fixture
def executor(cluster):
    """The executor of the cluster, whose workers know no database."""
    return cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.mark.exhaustive
def test_workers_publish_what_threads_do_and_no_log_tells_of_it(copied, cluster, executor):
    from distributed import Client

    here, there = copied(define), copied(define)
    dbanon.publish("patients", settings=here.settings, rows_per_block=BLOCK)
    release = dbanon.publish(
        "patients", settings=there.settings, rows_per_block=BLOCK, executor=executor
    )
    assert rows_proved(release) == ROWS
    assert shown(here) == shown(there)
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        logs = f"{client.get_scheduler_logs()} {client.get_worker_logs()}"
    assert there.server.password not in logs
    assert "gastritis" not in logs


@pytest.mark.exhaustive
def test_a_killed_worker_is_replaced(copied, cluster, executor, tmp_path):
    here, there = copied(define), copied(define)
    dbanon.publish("patients", settings=here.settings, rows_per_block=BLOCK)
    run_everywhere(cluster, BUSY.format(folder=str(tmp_path)))
    killed = []
    killer = threading.Thread(target=kill_one, args=(tmp_path, killed))
    killer.start()
    release = dbanon.publish(
        "patients", settings=there.settings, rows_per_block=BLOCK, executor=executor
    )
    killer.join()
    assert len(killed) == 1
    assert rows_proved(release) == ROWS
    assert dbanon.check("anon.patients", settings=there.settings).passed
    assert shown(here) == shown(there)


def kill_one(folder: Path, killed: list[int]) -> None:
    """Kill the first process that has begun a block, and let the others go on."""
    killed.append(begun(folder))
    os.kill(killed[0], signal.SIGKILL)
    (folder / "go").touch()


def begun(folder: Path) -> int:
    while not (names := [path.name for path in folder.iterdir() if path.name.isdigit()]):
        time.sleep(0.01)
    return int(names[0])


@contextmanager
def started(*words):
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_lost_scheduler_publishes_nothing_and_the_former_release_is_served(
    copied, monkeypatch, tmp_path, capfd
):
    database = copied(publish_in_one_piece)
    monkeypatch.setenv("DBANON_DSN", database.dsn)
    before = shown(database), private_tables(database)
    folder = tmp_path / "begun"
    folder.mkdir()
    busy = tmp_path / "busy.py"
    busy.write_text(BUSY.format(folder=str(folder)), encoding="utf-8")
    file = tmp_path / "scheduler.json"
    scheduler_words = (
        *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"),
        *("--dashboard-address", "127.0.0.1:0"),
    )
    worker_words = (
        "distributed.cli.dask_worker",
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    )
    with (
        started(*scheduler_words, "--scheduler-file", str(file)) as scheduler,
        started(*worker_words, "--preload", str(busy), "--scheduler-file", str(file)),
    ):
        executor = address_in(file).replace("tcp://", "dask://")
        killer = threading.Thread(target=lambda: (begun(folder), scheduler.kill()))
        killer.start()
        words = ["publish", "patients", "--rows-per-block", str(BLOCK), "--executor", executor]
        code = command(monkeypatch, *words, *ANEW)
        killer.join()
    assert code == 1
    assert "the scheduler of Dask was lost" in capfd.readouterr().err
    assert (shown(database), private_tables(database)) == before
    assert database.execute("SELECT count(*) FROM dbanon.release") == [(1,)]


def test_the_commands_of_the_guide_listen_on_the_loopback_interface_only(tmp_path):
    psutil = pytest.importorskip("psutil")
    file, guide = tmp_path / "scheduler.json", Path(__file__).parents[3] / GUIDE
    lines = guide.read_text(encoding="utf-8").splitlines()
    scheduling = next(line.split() for line in lines if line.startswith("dask scheduler"))
    working = next(line.split() for line in lines if line.startswith("dask worker"))

    def listening(process):
        family = (process, *process.children(recursive=True))
        connections = [one for member in family for one in member.net_connections("inet")]
        return [one.laddr for one in connections if one.status == psutil.CONN_LISTEN]

    def until(process, ports):
        latest = time.monotonic() + 60
        while len(found := listening(psutil.Process(process.pid))) < ports:
            assert time.monotonic() < latest
            time.sleep(0.1)
        return found

    anywhere = ("--port", "0", "--scheduler-file", str(file))
    with started("distributed.cli.dask_scheduler", *scheduling[2:], *anywhere) as scheduler:
        address = address_in(file)
        with started("distributed.cli.dask_worker", address, *working[3:], "--no-nanny") as worker:
            found = [*until(scheduler, 2), *until(worker, 2)]
    assert {"127.0.0.1"} == {address.ip for address in found}


def address_in(file: Path) -> str:
    import json

    until = time.monotonic() + 60
    while not (file.exists() and file.read_text(encoding="utf-8").strip()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return json.loads(file.read_text(encoding="utf-8"))["address"]


def command(monkeypatch, *words):
    from dbanon.cli import main

    monkeypatch.setattr(sys, "argv", ["dbanon", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_another_machine_is_asked_over_an_encrypted_connection_only():
    import dask

    with pytest.raises(ConfigError, match="would travel to it as they are"):
        Cluster.of("cluster.example.org:8786")
    with dask.config.set({"distributed.comm.require-encryption": True}):
        assert Cluster.of("cluster.example.org:8786").address == "tls://cluster.example.org:8786"
    assert Cluster.of("127.0.0.1:8786").address == "tcp://127.0.0.1:8786"


@pytest.fixture
def certified(certificate):
    """Let all that is said to a cluster be encrypted, by a certificate of this test's own."""
    import dask

    file, key = certificate
    settings = {"distributed.comm.require-encryption": True}
    settings["distributed.comm.tls.ca-file"] = file
    for part in ("client", "scheduler", "worker"):
        settings[f"distributed.comm.tls.{part}.cert"] = file
        settings[f"distributed.comm.tls.{part}.key"] = key
    with dask.config.set(settings):
        yield


def test_a_cluster_is_reached_over_tls_where_dask_says_so(copied, certified):
    from distributed import LocalCluster, Security

    database = copied(define)
    with LocalCluster(n_workers=1, security=Security(), **ALONE) as cluster:
        assert cluster.scheduler_address.startswith("tls://")
        executor = cluster.scheduler_address.replace("tls://", "dask://")
        release = dbanon.publish(
            "patients", settings=database.settings, rows_per_block=BLOCK, executor=executor
        )
    assert rows_proved(release) == ROWS


def test_a_scheduler_that_does_not_answer_is_named(copied, monkeypatch):
    monkeypatch.setattr("dbanon.actions.distribution.executors._CONNECTING", 0.2)
    database = copied(define)
    with pytest.raises(ConfigError, match=r"no scheduler of Dask answers at tcp://127\.0\.0\.1:9"):
        dbanon.publish("patients", settings=database.settings, executor="dask://127.0.0.1:9")
