"""PostgreSQL: connections, catalog, metadata, transfer, relations and checks; no algorithms."""
