"""The published results: many runs in one small file."""
