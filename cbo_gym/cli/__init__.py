"""The command line: list, show, optimum, agents, run, sweep, leaderboard, compare, choose."""

from cbo_gym.cli import environments, agents, runs, comparisons  # they add their commands, in this order  # noqa: F401, I001
from cbo_gym.cli.application import app

__all__ = ["app"]
