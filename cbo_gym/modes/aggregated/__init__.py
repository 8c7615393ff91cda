"""Aggregated mode."""
