"""The studio: pages on this machine in which a steward decides, publishes and reads reports."""
