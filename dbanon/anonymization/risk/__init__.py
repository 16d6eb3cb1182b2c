"""What a publication risks, in figures."""
