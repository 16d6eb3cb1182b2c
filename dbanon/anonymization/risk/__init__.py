"""Risk of a publication, in figures."""
