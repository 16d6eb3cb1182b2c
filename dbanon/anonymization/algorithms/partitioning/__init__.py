"""Algorithms that cut boxes of rows or unite them."""
