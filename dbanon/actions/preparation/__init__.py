"""What was asked for and what it takes, loaded before a search."""
