"""Subset mode."""
