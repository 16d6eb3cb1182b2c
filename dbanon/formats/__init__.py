"""Taxonomies and policies as text, rows and documents; pure code that knows no database."""
