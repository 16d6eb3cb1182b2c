import os

from scheduling import processes


def test_runs_of_folders_take_all_cores_and_those_of_files_this_process():
    several = len(os.sched_getaffinity(0)) + 1

    assert [several] * 3 == [
        processes(named) for named in (["tests"], ["/x/tests/db", "tests/e2e"], [])
    ]
    assert [0, 0, 0] == [
        processes(named)
        for named in (["tests/test_a.py"], ["test_a.py::test_b[1]"], ["tests/db", "test_a.py"])
    ]


def test_the_default_is_to_ask_how_many(pytestconfig):
    assert "-n=auto" in pytestconfig.getini("addopts")
