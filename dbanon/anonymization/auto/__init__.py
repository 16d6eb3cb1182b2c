"""The search ``auto``: freeze, a start by peeling or by blocks, and rounds of local search."""
