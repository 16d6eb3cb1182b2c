"""Codes, patterns and replacements of values."""
