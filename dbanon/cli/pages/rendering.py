"""Templates, with escaping of all names in a page."""

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
    """Raise ConfigError if no page can be written there, before any computation."""
    files.require(path, files.PAGE, example=example)
    extras.require("jinja2", what="a page")


def rendered(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template shows
    """Return a page without scripts or network access; equal values give equal text.

    Its policy for the browser refuses everything except one style, identified by its digest.
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
    """Escape invisible and reordering characters in texts, but not in templates."""
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    return visible(str(value))


def _code(text: str) -> Markup:
    from markupsafe import escape

    return escape(visible(text, keep="\n\t"))


def _width(share: float) -> str:
    """Format a share as a length within a drawing, at most 100%."""
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def _markup(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - a file of this package
