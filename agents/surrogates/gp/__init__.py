"""Gaussian processes that serve several rooms, and what they are made of."""
