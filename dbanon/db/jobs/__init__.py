"""Refreshes that are scheduled, and the jobs that come of them."""
