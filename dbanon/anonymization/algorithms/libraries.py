"""The libraries that some algorithms call, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dbanon.domain.errors import ConfigError


def library(name: str) -> Any:  # noqa: ANN401 - any module
    """Import a module of scipy, networkx or scikit-learn; raise ConfigError when it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        msg = f"this algorithm needs {name.partition('.')[0]}, which is not installed"
        raise ConfigError(msg, hint="pip install --upgrade --force-reinstall dbanon") from error
