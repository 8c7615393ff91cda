"""The command line: list, show, optimum, run, sweep, leaderboard, choose."""

from cbo_gym.cli import comparisons, environments, runs  # they add their commands  # noqa: F401
from cbo_gym.cli.application import app

__all__ = ["app"]
