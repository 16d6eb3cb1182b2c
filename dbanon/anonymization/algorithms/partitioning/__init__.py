"""Algorithms that cut or merge boxes of rows."""
