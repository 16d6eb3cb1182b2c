"""Scheduled refreshes, and the workers that run them."""
