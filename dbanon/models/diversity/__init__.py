"""Models of the sensitive values that a class holds."""
