"""The commands for scheduled refreshes: schedule, worker."""
