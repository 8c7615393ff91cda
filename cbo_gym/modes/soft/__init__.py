"""Soft mode."""
