"""Parts of a policy, and how two policies differ."""
