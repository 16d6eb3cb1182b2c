"""Models of how many rows, values or people a published row may be of."""
