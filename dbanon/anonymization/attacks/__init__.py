"""Simulated attacks on a publication, using persons of its source; the results are counts."""
