"""Loops over points: squared distances and errors."""
