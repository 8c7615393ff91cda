"""The command line: list, show, optimum, suites, agents, run, sweep, leaderboard, compare, choose."""

from cbo_gym.cli import environments, suites, agents, runs, comparisons  # they add their commands, in this order  # noqa: F401, I001
from cbo_gym.cli.application import app

__all__ = ["app"]
