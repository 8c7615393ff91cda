"""Masked mode."""
