"""The commands for releases: check, describe, grant, history, release."""
