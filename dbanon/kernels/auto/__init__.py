"""The loops of the search ``auto``."""
