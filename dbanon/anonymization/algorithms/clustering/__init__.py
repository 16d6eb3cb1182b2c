"""Algorithms that cluster rows."""
