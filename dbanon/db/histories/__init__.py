"""What is remembered of releases, so that they can be compared."""
