"""Runs: their fields and curves, their files, the folder of a sweep, and their provenance."""
