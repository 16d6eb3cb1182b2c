"""What the database proves of a relation, and of what it was made from."""
