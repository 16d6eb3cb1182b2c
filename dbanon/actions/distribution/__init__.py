"""Publication by several processes, each of which reads and groups blocks of rows."""
