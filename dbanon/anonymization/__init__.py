"""Arrays in, arrays out: groups of rows, what is published of them, and what it costs."""
