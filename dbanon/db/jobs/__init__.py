"""Schedules of refreshes, and the jobs that they create."""
