"""Dynamic mode."""
