"""Privacy models, one per file: parameters and arithmetic."""
