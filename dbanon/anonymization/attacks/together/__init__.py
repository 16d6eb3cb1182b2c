"""Attacks on two relations of the same table (Ganta et al., KDD 2008)."""
