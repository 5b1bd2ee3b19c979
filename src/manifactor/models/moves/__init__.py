"""What the moves of samples tell."""
