"""What a published relation is worth to those who read it, beside its source."""
