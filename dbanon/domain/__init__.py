"""Frozen values and errors shared by all layers; no logic."""
