"""Attacks on a publication, tried on persons of its source; all that comes out are counts."""
