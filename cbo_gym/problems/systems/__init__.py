"""The named systems of the literature, one module per family."""
