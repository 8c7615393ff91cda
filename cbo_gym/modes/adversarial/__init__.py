"""Adversarial mode."""
