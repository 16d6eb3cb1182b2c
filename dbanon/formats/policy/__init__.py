"""Parts of a policy, and differences between policies."""
