"""Privacy models in SQL: check functions and their calls."""
