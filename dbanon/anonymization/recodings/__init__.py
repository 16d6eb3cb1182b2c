"""Recodings: the published values of groups."""
