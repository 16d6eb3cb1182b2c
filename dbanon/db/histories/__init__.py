"""Stored membership of releases, for comparing them."""
