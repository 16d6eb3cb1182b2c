"""What no publication can undercut, and how to compute it."""
