"""Loops of the search ``auto``."""
