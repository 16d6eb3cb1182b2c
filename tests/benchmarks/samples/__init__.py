"""The tables that benchmarks publish."""
