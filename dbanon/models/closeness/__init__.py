"""Models that compare the distribution of sensitive values in a class with that of all rows."""
