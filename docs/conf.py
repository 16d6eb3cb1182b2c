"""How Sphinx makes the site: python -m sphinx -W docs site."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from generated import expanded

if TYPE_CHECKING:
    from sphinx.application import Sphinx

logging.getLogger("alembic").setLevel(logging.WARNING)  # Sphinx shows all that is logged

project = "dbanon"
release = version = installed("dbanon")
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"dbanon {version}"
html_extra_path = ["reference/policy.schema.json", "reference/json"]
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 3
nitpicky = True


def setup(app: Sphinx) -> None:
    """Put the generated parts into the pages as they are read."""
    app.connect("source-read", _expand)


def _expand(_app: Sphinx, _page: str, content: list[str]) -> None:
    content[0] = expanded(content[0])
