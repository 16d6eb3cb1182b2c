"""The commands on what is published: check, describe, grant, history, release."""
