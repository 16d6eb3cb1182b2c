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


def pinned():
    """Return the version of each package that the image installs."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert [] == [str(pin) for pin in pins if not str(pin.specifier).startswith("==")]
    return {
        pin.name: str(pin.specifier).removeprefix("==")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate(IMAGE)
    }


def asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    return [Requirement(line) for line in lines]


def lacking(requirements, pins):
    """Return what pinned versions do not satisfy, of all that applies to the image."""
    return [
        str(one)
        for one in requirements
        if (one.marker is None or one.marker.evaluate({**IMAGE, "extra": ""}))
        and not one.specifier.contains(pins.get(canonicalize_name(one.name), "0"))
    ]


def test_the_pinned_versions_satisfy_what_the_project_and_the_extras_of_the_image_require():
    pins = pinned()
    assert [] == lacking(asked_for(), pins)
    assert ["pyarrow>=18"] == lacking(asked_for(), {**pins, "pyarrow": "17"})


def test_whatever_pinned_packages_require_is_pinned():
    pins, compared = pinned(), 0
    for name in pins:
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # of another Python
            continue
        of_name = [Requirement(line) for line in lines]
        missing = [one for one in of_name if canonicalize_name(one.name) not in pins]
        assert [] == lacking(missing, pins), name
        compared += 1
    assert compared > len(pins) / 2


def test_the_image_installs_the_pinned_versions_on_the_python_that_is_compared():
    dockerfile = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    assert {IMAGE["python_version"]} == set(
        re.findall(r"^FROM python:([0-9.]+)", dockerfile, re.MULTILINE)
    )
    assert "--constraint /wheels/constraints.txt" in dockerfile
    assert f"[{','.join(EXTRAS)}]" in dockerfile
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "!constraints.txt" in ignored


def test_a_service_runs_the_worker_with_all_that_the_command_has():
    services = yaml.safe_load((DOCKER / "compose.yml").read_text(encoding="utf-8"))["services"]
    worker = services["worker"]
    assert {"service": "dbanon"} == worker["extends"]
    (command,) = worker["command"]
    assert command in get_command(app).commands
