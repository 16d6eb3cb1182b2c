"""Compiled inner loops over plain arrays; imports nothing else of dbanon."""
