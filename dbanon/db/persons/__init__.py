"""Persons, by the keyed hashes that they are remembered by."""
