"""Hard mode."""
