"""Recodings: what is published instead of the values of a group."""
