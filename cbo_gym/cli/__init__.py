"""The command line.

Its commands: list, show, optimum, suites, agents, run, sweep, leaderboard, compare, choose, publish, verify,
replay, check-submission, claims, check and study.
"""

# Each module adds its commands, in this order.
from cbo_gym.cli import environments, suites, agents, runs, comparisons, published, claims, checks, studies  # noqa: F401, I001
from cbo_gym.cli.application import app

__all__ = ["app"]
