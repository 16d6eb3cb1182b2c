import _thread
import signal
import threading
from itertools import count

import pytest

from dbanon.anonymization.threads import GivenUp, aside, given_up, in_threads


def never():
    return False


def test_a_task_aside_gives_its_result():
    assert 42 == aside(lambda: 42, until=never)


def test_what_a_task_aside_raises_is_raised():
    def task():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        aside(task, until=never)


def test_nothing_begins_that_nobody_waits_for():
    begun = []
    with pytest.raises(GivenUp):
        aside(lambda: begun.append(1), until=lambda: True)
    assert [] == begun


def test_a_task_is_given_up_while_it_runs_and_can_tell():
    release, told = threading.Event(), []
    ended = threading.Event()

    def task():
        release.wait(60)
        told.append(given_up())
        ended.set()

    looks = count()
    with pytest.raises(GivenUp):
        aside(task, until=lambda: next(looks) > 0)
    assert not ended.is_set()
    release.set()
    assert ended.wait(60)
    assert [True] == told
    assert not given_up()


@pytest.fixture
def heeding():
    """Heed SIGINT, whatever the parent ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_does_not_wait_for_a_task(heeding):
    release, begun = threading.Event(), threading.Event()

    def task():
        begun.set()
        release.wait(60)

    def interrupt():
        begun.wait(60)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        aside(task, until=never)
    release.set()


def test_items_are_done_side_by_side_and_kept_in_order():
    assert [i * i for i in range(50)] == in_threads(lambda i: i * i, range(50))
    assert [] == in_threads(lambda i: i, [])


def test_the_error_of_an_item_is_raised():
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda i: 1 / i, [1, 0, 2])


def test_no_item_begins_once_the_caller_is_given_up():
    release, begun, ended = threading.Event(), [], threading.Event()

    def item(i):
        begun.append(i)
        release.wait(60)

    def task():
        try:
            in_threads(item, range(1000))
        except GivenUp:
            ended.set()

    with pytest.raises(GivenUp):
        aside(task, until=lambda: len(begun) > 0)
    assert ended.wait(60)
    release.set()
    assert len(begun) < 1000
