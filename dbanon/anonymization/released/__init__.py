"""The released data, as cells over the codes of the source."""
