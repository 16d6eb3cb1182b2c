"""Algorithms that partition the rows of a table into groups."""
