"""Frozen values and errors that every layer shares; nothing here does any work."""
