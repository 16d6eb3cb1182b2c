"""Read a table in blocks, by several sessions on one snapshot."""
