"""Compiled inner loops of plain arrays; nothing of dbanon is imported here."""
