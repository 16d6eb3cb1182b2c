"""Privacy models in SQL: the functions that check them and the calls of these."""
