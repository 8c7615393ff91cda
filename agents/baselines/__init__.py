"""Baselines: random play, and optimisers of other libraries."""
