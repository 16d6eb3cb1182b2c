"""Browsers for the pages of reports."""

from browsers import browser, show

__all__ = ["browser", "show"]
