"""Load and check the inputs of a publication, read the rows and group them."""
