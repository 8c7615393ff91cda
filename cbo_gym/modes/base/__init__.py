"""What the modes share."""
