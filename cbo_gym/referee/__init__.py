"""Checks of results from untrusted people: isolated processes, replays, blind play and submissions."""
