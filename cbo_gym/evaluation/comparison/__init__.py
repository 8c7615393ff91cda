"""Compare agents: leaderboards, pairs of agents, tests of significance, and choice of parameters."""
