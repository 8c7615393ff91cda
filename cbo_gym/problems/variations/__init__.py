"""Variations of problems: the same system, given otherwise."""
