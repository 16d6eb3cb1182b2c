"""Publishing in blocks of rows, in this process and in others of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from psycopg import sql
from tables import make_patients, patients_policy, rows_proved

import dbanon
from dbanon.actions.distribution import tasks
from dbanon.actions.distribution.executors import executor_named
from dbanon.anonymization.regions import cutting
from dbanon.domain.errors import ConfigError, DatabaseError, Unsatisfiable
from dbanon.domain.policy import ColumnRule, MaskingStep, ModelSpec, Policy, Role
from dbanon.domain.table import TableName

ROWS, BLOCK = 2_000, 600
TABLE = TableName("public", "patients")
T_CLOSENESS = ModelSpec("t-closeness", {"t": 0.25})


def define(database):
    make_patients(database, rows=ROWS)
    dbanon.set_policy(TABLE, patients_policy(TABLE), settings=database.settings)


@pytest.fixture
def patients(copied):
    """2,000 patients with a stored policy: k = 5, l = 3."""
    return copied(define)


def publish(database, table="patients", **options):
    options = {"rows_per_block": BLOCK, **options}
    return dbanon.publish(table, settings=database.settings, **options)


def shown(database, name="patients"):
    """Return the published rows; ``note`` tells whose each is."""
    return sorted(
        database.execute(sql.SQL("SELECT a::text FROM anon.{} AS a").format(sql.Identifier(name)))
    )


def n_blocks(stages):
    (remark,) = [one for one in stages.remarks if one.startswith("blocks: ")]
    return int(remark.split()[1].rstrip(","))


@pytest.mark.exhaustive
def test_what_is_published_in_blocks_holds_in_the_database_and_of_each_row(patients):
    stages = _stages()
    release = publish(patients, stages=stages)
    assert n_blocks(stages) >= 4
    assert rows_proved(release) == ROWS
    assert dbanon.check("anon.patients", settings=patients.settings).passed
    ((true,),) = patients.execute(
        "SELECT count(*) FROM anon.patients AS a JOIN public.patients AS p USING (note)"
        " WHERE a.age @> p.age AND a.sex IN (p.sex, '*') AND a.born @> p.born"
        " AND (a.weight @> p.weight OR (p.weight IS NULL AND coalesce(a.weight = '(,)', true)))"
        " AND a.disease IS NOT DISTINCT FROM p.disease"
    )
    assert true == ROWS


def _stages():
    from dbanon.domain.outcomes import Stages

    return Stages()


def test_processes_publish_what_threads_do(copied):
    here, there = copied(define), copied(define)
    assert publish(here, executor="threads").loss == publish(there, executor="processes").loss
    assert shown(here) == shown(there)
    assert multiprocessing.active_children() == []


@pytest.mark.exhaustive
def test_the_order_of_the_table_decides_nothing(copied):
    ordered, shuffled = copied(define), copied(define)
    shuffled.execute(
        "CREATE TABLE others AS SELECT * FROM patients; TRUNCATE patients;"
        " INSERT INTO patients SELECT * FROM others ORDER BY md5(id::text)"
    )
    publish(ordered, seed=3)
    publish(shuffled, seed=3)
    assert shown(ordered) == shown(shuffled)


@pytest.mark.exhaustive
def test_a_table_of_one_block_is_published_as_in_one_piece(copied):
    whole, block = copied(define), copied(define)
    publish(whole, rows_per_block=None)
    stages = _stages()
    publish(block, rows_per_block=ROWS, stages=stages)
    assert n_blocks(stages) == 1
    assert shown(whole) == shown(block)


@pytest.mark.exhaustive
def test_distributions_are_compared_with_that_of_the_whole_table(patients):
    stages = _stages()
    release = publish(patients, models=[T_CLOSENESS], stages=stages)
    assert n_blocks(stages) >= 2
    assert rows_proved(release) == ROWS
    assert {result.model for result in release.checks.results} >= {"t-closeness"}


@pytest.mark.exhaustive
def test_what_blocks_lack_by_themselves_they_have_together(patients):
    """Almost all who are older than 40 have one disease, so that no block of these is diverse."""
    patients.execute("UPDATE patients SET disease = 'flu' WHERE age > 40 AND id % 50 > 0")
    release = publish(patients, rows_per_block=200, l=4)
    assert rows_proved(release) == ROWS


def test_blocks_that_do_not_meet_the_models_are_joined(patients, monkeypatch):
    """A sample may not show it; here it is not asked."""
    patients.execute("UPDATE patients SET disease = 'flu' WHERE age > 40 AND id % 50 > 0")
    monkeypatch.setattr(cutting._Cutting, "_holds", lambda *_: True)  # noqa: SLF001
    stages = _stages()
    release = publish(patients, rows_per_block=100, l=4, stages=stages)
    assert any(remark.startswith("blocks that cannot stand alone") for remark in stages.remarks)
    assert n_blocks(stages) >= 2
    assert rows_proved(release) == ROWS


@pytest.mark.parametrize("model", [("entropy-l-diversity", 6.0), ("recursive-l-diversity", 9)])
def test_what_no_group_can_meet_is_said_before_a_block_is_grouped(patients, monkeypatch, model):
    monkeypatch.setattr(tasks.GroupBlock, "perform", None)  # nobody gets there
    name, l = model
    params = {"l": l, "c": 0.5} if name.startswith("recursive") else {"l": l}
    with pytest.raises(Unsatisfiable, match="impossible"):
        publish(patients, models=[ModelSpec(name, params)])


def test_what_the_whole_table_lacks_no_block_has(patients):
    with pytest.raises(Unsatisfiable, match="5 distinct values, fewer than l = 6"):
        publish(patients, l=6)
    assert patients.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["table", "view"])
def test_hostile_names_keys_of_several_columns_and_null(database, kind):
    table = TableName("public", 'odd "t"; DROP TABLE x; --')
    key, text, day = 'k"1', "%s {} '", "day; SELECT 1"
    names = {"t": sql.Identifier(*map(str, (table.schema, table.name)))}
    names |= {"k": sql.Identifier(key), "x": sql.Identifier(text), "d": sql.Identifier(day)}
    database.execute(
        sql.SQL(
            "CREATE TABLE {t} ({k} text, part integer, {x} text, {d} date, s text,"
            " PRIMARY KEY ({k}, part));"
            " INSERT INTO {t} SELECT 'p' || i % 7, i, CASE WHEN i % 11 > 0 THEN '\\''\"%' || i % 13"
            " END, date '2000-01-01' + i % 97, 's' || i % 5 FROM generate_series(1, 1500) AS i"
        ).format(**names)
    )
    columns = (
        ColumnRule(key, Role.IDENTIFIER),
        ColumnRule("part", Role.IDENTIFIER),
        ColumnRule(text, Role.QUASI),
        ColumnRule(day, Role.QUASI),
        ColumnRule("s", Role.SENSITIVE),
    )
    models = (ModelSpec("k-anonymity", {"k": 4}), ModelSpec("l-diversity", {"l": 2}))
    policy = Policy(table=table, columns=columns, models=models, algorithm="mondrian")
    dbanon.set_policy(table, policy, settings=database.settings)
    stages = _stages()
    release = publish(database, table, rows_per_block=400, kind=kind, name="odd", stages=stages)
    assert n_blocks(stages) >= 3
    assert rows_proved(release) == 1500


REFUSED = {
    "masking": (
        {"masking": (MaskingStep("rounding", ("weight",), {"base": 5}),)},
        "masking changes values",
    ),
    "sample": ({"sample": 0.5}, "a sample is drawn"),
    "suppression": (
        {"max_suppressed": 0.1, "models": (ModelSpec("k-anonymity", {"k": 5}), T_CLOSENESS)},
        "before the last block",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_rows_is_refused(patients, name):
    changes, words = REFUSED[name]
    policy = replace(patients_policy(TABLE), **changes)
    dbanon.set_policy(TABLE, policy, settings=patients.settings)
    with pytest.raises(ConfigError, match=words):
        publish(patients)
    assert patients.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def test_a_view_is_refused(patients):
    patients.execute("CREATE VIEW seen AS SELECT * FROM patients")
    policy = replace(patients_policy(TableName("public", "seen")), key=("id",))
    dbanon.set_policy("seen", policy, settings=patients.settings)
    with pytest.raises(ConfigError, match="is no table"):
        publish(patients, "seen")


def test_persons_with_several_rows_are_refused_and_those_with_one_are_not(patients):
    patients.execute("ALTER TABLE patients ALTER note SET NOT NULL")
    policy = patients_policy(TABLE, subject="note")
    columns = (*policy.columns[:-1], ColumnRule("note", Role.IDENTIFIER))
    policy = replace(policy, columns=columns)
    dbanon.set_policy(TABLE, policy, settings=patients.settings)
    patients.execute("UPDATE patients SET note = 'note 1' WHERE id = 2")
    with pytest.raises(ConfigError, match="several rows"):
        publish(patients)
    patients.execute("UPDATE patients SET note = 'note 2' WHERE id = 2")
    assert rows_proved(publish(patients)) == ROWS


def test_a_release_of_remembered_classes_is_refused_and_the_former_is_served(patients):
    publish(patients)
    before = shown(patients)
    with pytest.raises(ConfigError, match="reuses the classes of earlier ones"):
        publish(patients)
    assert shown(patients) == before
    anew = {"new_series": True, "recipients_changed": True}
    assert publish(patients, k=7, **anew).id == 2
    assert shown(patients) != before


def test_an_executor_that_does_not_exist_is_refused(patients):
    for name in ("theads", "dask://", "dask://somewhere"):
        with pytest.raises(ConfigError):
            publish(patients, executor=name)


def test_dask_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match="needs the library distributed"):
        executor_named("dask://localhost:8786")


@pytest.mark.parametrize("command", ["plan", "refresh"])
@pytest.mark.parametrize("option", [("--executor", "processes"), ("--rows-per-block", "100")])
def test_other_commands_do_not_take_the_options(run, command, option):
    assert "No such option" in run(command, "patients", *option, code=2).err


def test_a_dataset_is_refused(run, tmp_path):
    file = tmp_path / "clinic.toml"
    file.write_text('persons = "a"\ntables = ["b"]\n', encoding="utf-8")
    told = run("publish", "--dataset", file, "--executor", "processes", code=1)
    assert "not in blocks" in told.err


def test_a_killed_process_is_replaced(copied, monkeypatch):
    here, there = copied(define), copied(define)
    publish(here)
    killed = []

    def kill():
        while not killed:
            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)
                break
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    release = publish(there, executor="processes")
    killer.join()
    assert killed
    assert rows_proved(release) == ROWS
    assert shown(here) == shown(there)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_search_that_is_stopped_leaves_nothing_behind(patients, executor):
    stages = _stages()
    stages.on_start = lambda name: setattr(stages, "stopped", name == "cluster")
    with pytest.raises(KeyboardInterrupt):
        publish(patients, executor=executor, stages=stages)
    assert "cluster" in stages.seconds
    assert multiprocessing.active_children() == []
    assert patients.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def test_workers_that_group_fewer_rows_publish_nothing(patients, monkeypatch):
    perform = tasks.GroupBlock.perform

    def fewer(self, job):
        block = perform(self, job)
        return replace(block, groups=replace(block.groups, group=block.groups.group[1:]))

    monkeypatch.setattr(tasks.GroupBlock, "perform", fewer)
    with pytest.raises(DatabaseError, match="did not return the rows of its block"):
        publish(patients)
    assert patients.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def test_workers_that_leave_out_more_rows_than_they_may_publish_nothing(patients, monkeypatch):
    perform = tasks.GroupBlock.perform

    def lazily(self, job):
        block = perform(self, job)
        first = np.where(block.groups.group > 0, np.int32(-1), block.groups.group)
        return replace(block, groups=replace(block.groups, group=first))

    monkeypatch.setattr(tasks.GroupBlock, "perform", lazily)
    with pytest.raises(DatabaseError, match=r"are left out of 2,000 rows, and 0 may be"):
        publish(patients)
    assert patients.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def test_what_a_worker_raises_tells_no_value(patients, monkeypatch):
    def fail(self, job):
        raise ValueError("cancer of patient 17")

    monkeypatch.setattr(tasks.GroupBlock, "perform", fail)
    with pytest.raises(DatabaseError, match=r"^a worker failed: ValueError$"):
        publish(patients)
    assert patients.execute("SELECT count(*) FROM dbanon.release") == [(0,)]


def scanned(database):
    """Return how often the table was scanned, once the statistics of all sessions are there."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    while database.execute(f"{others} AND pid <> pg_backend_pid()") != [(0,)]:
        time.sleep(0.01)
    ((scans,),) = database.execute(
        "SELECT seq_scan FROM pg_stat_user_tables WHERE relid = 'public.patients'::regclass"
    )
    return scans


@pytest.mark.pg(">= 15")  # earlier servers collect statistics in another process, some time later
def test_the_table_is_scanned_as_often_for_many_blocks_as_for_few(copied):
    scans, blocks = [], []
    for rows_per_block in (ROWS, 100):
        database, stages = copied(define), _stages()
        before = scanned(database)
        publish(database, rows_per_block=rows_per_block, stages=stages)
        scans.append(scanned(database) - before)
        blocks.append(n_blocks(stages))
    assert blocks[0] == 1
    assert blocks[1] > 20
    assert scans[0] == scans[1]
