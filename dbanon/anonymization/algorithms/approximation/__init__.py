"""Algorithms with a proved bound on their cost."""
