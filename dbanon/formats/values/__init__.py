"""What some values of a table give away."""
