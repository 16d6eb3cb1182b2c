"""The costs of boxes, and measures of what is published."""
