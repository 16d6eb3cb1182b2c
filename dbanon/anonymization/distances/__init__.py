"""Distances between rows, values and distributions."""
