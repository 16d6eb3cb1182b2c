"""Ordinary tables beside a release, for its readers."""
