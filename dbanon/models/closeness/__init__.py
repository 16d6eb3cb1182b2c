"""Models of how sensitive values are distributed in a class and in all rows."""
