"""Measures of a run, and statistics over runs."""
