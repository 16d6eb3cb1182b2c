"""Models of how many rows, values or persons a published row may belong to."""
