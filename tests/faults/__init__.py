"""What goes wrong around dbanon, for tests to let it happen."""
