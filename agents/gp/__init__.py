"""Gaussian processes: kernels and their algebra, stacked fits, posteriors and draws."""
