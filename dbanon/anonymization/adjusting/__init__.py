"""Adjust groups of any kind until they meet the requirement."""
