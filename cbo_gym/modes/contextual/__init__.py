"""Contextual mode."""
