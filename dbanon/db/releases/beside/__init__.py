"""Companion relations: ordinary tables that are published together with a view."""
