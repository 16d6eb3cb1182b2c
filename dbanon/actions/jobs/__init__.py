"""Refreshes that are scheduled, and the workers that do them."""
