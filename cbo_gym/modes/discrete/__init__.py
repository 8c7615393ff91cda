"""Discrete mode."""
