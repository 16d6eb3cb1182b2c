"""What keeps a live view from showing a class that no longer holds."""
