"""Costs of boxes, and measures of information loss."""
