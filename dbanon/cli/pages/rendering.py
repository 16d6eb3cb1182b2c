"""Templates, and what makes whatever a name holds harmless in a page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbanon.cli import files
from dbanon.cli.notation import number, percent
from dbanon.cli.pages.figures import look
from dbanon.domain import extras
from dbanon.domain.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_TEMPLATES = Path(__file__).parent / "templates"


def require(path: Path, *, example: str) -> None:
    """Raise ConfigError when no page could be written there, before anything is computed."""
    files.require(path, files.PAGE, example=example)
    extras.require("jinja2", what="a page")


def rendered(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template shows
    """Return a page; the same values give the same text.

    The page may load nothing, run nothing and send nothing: the browser is told to refuse all but
    the one style that is known by its digest.
    """
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = _environment().get_template(template)
    return page.render(
        style=_markup(style), digest=f"sha256-{digest}", version=version("dbanon"), **values
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number, "code": _code}
    environment.filters |= {"width": _width, "look": look}
    return environment


def _seen(value: object) -> object:
    """Spell in any text what a browser would hide or reorder; templates themselves are no text."""
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    return visible(str(value))


def _code(text: str) -> Markup:
    """Return text of several lines, escaped as all text is."""
    from markupsafe import escape

    return escape(visible(text, keep="\n\t"))


def _width(share: float) -> str:
    """Spell a share as a length within a drawing, which has no room beyond 100%."""
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _markup(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - a file of this package
