"""Distances between rows and values."""
