"""Utility of a published relation, compared with its source."""
