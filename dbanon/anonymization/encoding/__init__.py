"""Encode columns as the codes that all algorithms use."""
