"""Base classes of the modes."""
