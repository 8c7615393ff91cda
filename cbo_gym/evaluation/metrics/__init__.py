"""Metrics of a run, such as regrets and scores, and statistics over runs."""
