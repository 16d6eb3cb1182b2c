"""What groups cost: the costs of boxes, and measures of what is published."""
