"""Variations of problems: the same system in another form."""
