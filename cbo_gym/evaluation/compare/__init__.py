"""Agents beside each other: leaderboards, pairs, significance, parameters chosen, claims judged."""
