"""Comparison of agents: leaderboards, pairs, significance and choice of parameters."""
