"""Privacy models: what a class must achieve."""
