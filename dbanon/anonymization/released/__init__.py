"""What readers see of a publication, as cells over the codes of the source."""
