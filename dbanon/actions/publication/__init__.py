"""What publishing does: the transaction it opens, and the steps within it."""
