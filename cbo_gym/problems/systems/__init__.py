"""The named systems of the literature, a module a family."""
