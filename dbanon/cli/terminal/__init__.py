"""What commands draw with, and how they end when the terminal goes away."""
