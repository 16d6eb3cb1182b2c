"""The commands on refreshes that are scheduled: schedule, worker."""
