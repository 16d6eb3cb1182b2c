"""Changing values without grouping rows: none of it makes a table k-anonymous by itself."""
