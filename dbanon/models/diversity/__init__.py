"""Models of the sensitive values of a class."""
