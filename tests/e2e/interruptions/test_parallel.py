"""Two that do one thing at once: one waits for the other, and both succeed."""

import threading
import time

from tables import define_patients, make_patients, patients_policy

import dbanon
from dbanon.actions.publication import steps
from dbanon.db import rights
from dbanon.db.metadata import migrate, store
from dbanon.domain.outcomes import Operation
from dbanon.formats import taxonomies


def at_once(work, count):
    """Run the same in threads that begin together; return results and errors."""
    barrier, results, errors = threading.Barrier(count), [], []

    def run():
        barrier.wait()
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - any error is the finding
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, errors


def test_of_inits_at_once_one_installs_and_the_others_wait(bare_database, monkeypatch):
    entered = threading.Barrier(4)
    original = migrate.state

    def state(session):
        found = original(session)
        if found == (None, None):
            entered.wait(30)  # all of them find an empty database
        return found

    monkeypatch.setattr(migrate, "state", state)
    results, errors = at_once(lambda: dbanon.init(bare_database.settings)["changed"], 4)
    assert [] == errors
    assert [False, False, False, True] == sorted(results)


def test_imports_of_one_name_at_once_are_versions_of_it(database, tmp_path, monkeypatch):
    file = tmp_path / "tree.csv"
    file.write_text("a;*\nb;*\n")
    entered = threading.Barrier(3)
    attempts, original = [], vars(store)["_next_version"]

    def next_version(session, taxonomy):
        attempts.append(threading.get_ident())
        if attempts.count(threading.get_ident()) == 1:
            entered.wait(30)
        found = original(session, taxonomy)
        time.sleep(0.5)  # the others take the same version before this one commits
        return found

    monkeypatch.setattr(store, "_next_version", next_version)

    def work():
        return dbanon.import_taxonomy("tree", file, settings=database.settings).version

    results, errors = at_once(work, 3)
    assert [] == errors
    assert [1, 2, 3] == sorted(results)
    assert len(attempts) > 3


STORED = Operation("the taxonomy large", "stored")


def test_many_leaves_are_stored_and_read_back(database):
    lines = (f"{i};{i // 100}~;{i // 10_000}~~;*" for i in range(100_000))
    taxonomy = taxonomies.read_csv("\n".join(lines), name="large")
    with migrate.current_session(database.settings, operation=STORED) as session:
        assert 1 == store.add_taxonomy(session, taxonomy)
        found = store.load_taxonomies(session, {"large": 1})["large"]
    assert (100_000, taxonomy.labels) == (found.n_leaves, found.labels)


def test_first_publications_into_one_new_schema_at_once_both_succeed(database, monkeypatch):
    for name in ("patients", "visitors"):
        table = make_patients(database, name=name)
        dbanon.set_policy(table, patients_policy(table), settings=database.settings)
    entered, names = threading.Barrier(2), iter(["patients", "visitors"])
    original = steps.prepare

    def prepare(*arguments, **options):
        entered.wait(30)  # both searches run while neither publication has committed
        return original(*arguments, **options)

    monkeypatch.setattr(steps, "prepare", prepare)

    def work():
        return str(dbanon.publish(next(names), schema="fresh", settings=database.settings).relation)

    results, errors = at_once(work, 2)
    assert [] == errors
    assert ["fresh.patients", "fresh.visitors"] == sorted(results)


def test_two_roles_are_given_a_new_schema_at_once(database, monkeypatch):
    roles = [database.role(name) for name in ("first", "second")]
    waiting = iter(roles)
    entered, original = threading.Barrier(2), vars(migrate)["_everyday_rights"]

    def require_roles(session, asked):
        entered.wait(30)

    def everyday_rights(role, views):
        time.sleep(0.5)  # the other one asks for the schema before this one commits
        return original(role, views)

    monkeypatch.setattr(rights, "require_roles", require_roles)
    monkeypatch.setattr(migrate, "_everyday_rights", everyday_rights)
    _, errors = at_once(
        lambda: dbanon.init(database.settings, role=next(waiting), schema="fresh"), 2
    )
    assert [] == errors
    with database.connect() as connection:
        found = [
            connection.execute(
                "SELECT has_schema_privilege(%s, 'fresh', 'CREATE')", (role,)
            ).fetchone()[0]
            for role in roles
        ]
    assert [True, True] == found


def test_a_dry_run_makes_no_schema(database):
    define_patients(database)
    dbanon.publish("patients", schema="fresh", dry_run=True, settings=database.settings)
    with database.connect() as connection:
        found = connection.execute("SELECT to_regnamespace('fresh')").fetchone()
    assert (None,) == found
