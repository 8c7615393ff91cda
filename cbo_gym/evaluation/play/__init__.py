"""Agents on environments: one run, or a grid of them, in processes of their own."""
