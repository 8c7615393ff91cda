"""Checks of published and submitted results, without trust in them: replays, blind play, isolated processes."""
