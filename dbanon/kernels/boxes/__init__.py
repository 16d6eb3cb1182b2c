"""Loops over the boxes of groups and their costs."""
