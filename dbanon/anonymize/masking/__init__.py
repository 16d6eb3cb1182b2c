"""Methods that change values without promising k-anonymity, and what they cost."""
