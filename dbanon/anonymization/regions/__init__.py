"""Grouping a table block by block, where nobody holds all of its rows."""
