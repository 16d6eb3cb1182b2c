"""From groups of any kind to groups that meet what is asked."""
