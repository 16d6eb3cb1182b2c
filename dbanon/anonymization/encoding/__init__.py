"""From columns to the codes that all algorithms work on."""
