"""Mask values without grouping rows; none of these methods makes a table k-anonymous."""
