"""Algorithms with a proved bound on what they cost."""
