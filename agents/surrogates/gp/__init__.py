"""Gaussian processes that several families of agents use, and their kernels, noise and fits."""
