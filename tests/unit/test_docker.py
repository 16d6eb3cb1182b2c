"""What the image installs, and what the services run."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

from dbanon.cli import app

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
EXTRAS = ("dask", "plot", "replace", "report", "textbook")
IMAGE = {"python_version": "3.12", "python_full_version": "3.12.0"}


def locked():
    lines = (DOCKER / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [] == [line for line in pins if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9.]*", line)]
    return dict(line.split("==") for line in pins)


def asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    return [Requirement(line) for line in lines]


def lacking(requirements, pins):
    """Return what a lock does not satisfy, of all that applies to the image."""
    return [
        str(one)
        for one in requirements
        if (one.marker is None or one.marker.evaluate({**IMAGE, "extra": ""}))
        and not one.specifier.contains(pins.get(canonicalize_name(one.name), "0"))
    ]


def test_the_lock_satisfies_what_the_project_and_the_extras_of_the_image_require():
    pins = locked()
    assert [] == lacking(asked_for(), pins)
    assert ["pyarrow>=18"] == lacking(asked_for(), {**pins, "pyarrow": "17"})


def test_the_lock_has_whatever_its_packages_require():
    pins, compared = locked(), 0
    for name in pins:
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # one that only the image has
            continue
        of_name = [Requirement(line) for line in lines]
        missing = [one for one in of_name if canonicalize_name(one.name) not in pins]
        assert [] == lacking(missing, pins), name
        compared += 1
    assert compared > len(pins) / 2


def test_the_image_is_of_the_python_that_the_lock_was_resolved_for_and_may_read_it():
    dockerfile = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    assert {IMAGE["python_version"]} == set(
        re.findall(r"^FROM python:([0-9.]+)", dockerfile, re.MULTILINE)
    )
    assert "--requirement /wheels/requirements.lock" in dockerfile
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "!docker/requirements.lock" in ignored


def test_a_service_runs_the_worker_with_all_that_the_command_has():
    services = yaml.safe_load((DOCKER / "compose.yml").read_text(encoding="utf-8"))["services"]
    worker = services["worker"]
    assert {"service": "dbanon"} == worker["extends"]
    (command,) = worker["command"]
    assert command in get_command(app).commands
