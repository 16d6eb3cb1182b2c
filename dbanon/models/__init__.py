"""Privacy models, one a file: its parameters, its arithmetic, and what follows from both."""
