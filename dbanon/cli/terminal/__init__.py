"""Terminal output of commands, also after the terminal has closed."""
