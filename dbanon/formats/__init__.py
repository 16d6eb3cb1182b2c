"""Taxonomies and policies as text, rows and documents; pure code without a database."""
