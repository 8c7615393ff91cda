"""Agents on environments: one run, or a grid of them, in separate processes."""
