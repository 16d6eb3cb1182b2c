"""Algorithms: each partitions the rows of a table into groups."""
