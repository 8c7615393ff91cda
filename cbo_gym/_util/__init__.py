"""Helpers without knowledge of causality, used by every other package."""
