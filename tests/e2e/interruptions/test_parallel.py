"""Two that do one thing at once: one waits for the other, and both succeed."""

import threading

import pytest
import sqlalchemy as sa

import dbanon
from dbanon.db.metadata import migrate, store
from dbanon.domain.deeds import Deed
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


@pytest.mark.one_server
def test_imports_of_one_name_at_once_are_versions_of_it(database, tmp_path, monkeypatch):
    file = tmp_path / "tree.csv"
    file.write_text("a;*\nb;*\n")
    entered = threading.Barrier(3)
    first = threading.local()
    original = sa.Connection.execute

    def execute(self, statement, *arguments, **options):
        found = original(self, statement, *arguments, **options)
        if "max(" in str(statement) and not getattr(first, "done", False):
            first.done = True
            entered.wait(30)  # all of them find the same newest version
        return found

    monkeypatch.setattr(sa.Connection, "execute", execute)

    def work():
        return dbanon.import_taxonomy("tree", file, settings=database.settings).version

    results, errors = at_once(work, 3)
    assert [] == errors
    assert [1, 2, 3] == sorted(results)


STORED = Deed("the taxonomy large", "stored")


@pytest.mark.one_server
def test_many_leaves_are_stored_and_read_back(database):
    lines = (f"{i};{i // 100}~;{i // 10_000}~~;*" for i in range(100_000))
    taxonomy = taxonomies.read_csv("\n".join(lines), name="large")
    with migrate.current_session(database.settings, deed=STORED) as session:
        assert 1 == store.add_taxonomy(session, taxonomy)
        found = store.load_taxonomies(session, {"large": 1})["large"]
    assert (100_000, taxonomy.labels) == (found.n_leaves, found.labels)
