"""Microaggregation: groups of about k rows with small squared errors."""
