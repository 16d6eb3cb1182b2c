"""README and the pages of docs/, as people and tests read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generated import expanded

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One file; ``written`` is what is tracked, ``text`` has the generated parts as well."""

    path: Path

    @cached_property
    def written(self):
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def text(self):
        return expanded(self.written)

    @property
    def prose(self):
        return FENCE.sub("", self.text)

    @property
    def anchors(self):
        """Return what a link can name after ``#``, as forges and the site make it of titles."""
        titles = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    def blocks(self, language):
        return [match[2] for match in FENCE.finditer(self.written) if match[1] == language]

    def rows(self, heading):
        """Return the cells of the first table under a heading."""
        section = self.text.partition(f"{heading}\n")[2]
        lines = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)[0].splitlines()
        return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def page(name):
    return Page(ROOT / name)


SITE = [Page(path) for path in sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page("README.md"), page("CONTRIBUTING.md"), page("SECURITY.md"), *SITE]
WRITTEN = "\n".join(page.written for page in PAGES)
TEXT = "\n".join(page.text for page in PAGES)


def blocks(language):
    return [text for page in PAGES for text in page.blocks(language)]
