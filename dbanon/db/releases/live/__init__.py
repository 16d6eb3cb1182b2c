"""Live views: hide a class as soon as it fails its models."""
