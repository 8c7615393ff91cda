"""Checks of published and submitted results, which nobody is trusted for: replays, blind play, isolated processes."""
