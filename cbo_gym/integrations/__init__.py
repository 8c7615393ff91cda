"""Environments for other libraries: BoTorch, Optuna and Stable-Baselines3, and samples as a data frame of Polars."""
