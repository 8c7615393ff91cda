"""The command line ``cbo-gym``, made with Typer."""

# Importing a module adds its commands; --help lists them in this order.
from cbo_gym.cli import environments, suites, agents, runs, comparisons, published, claims, checks, studies  # noqa: F401, I001
from cbo_gym.cli.application import app

__all__ = ["app"]
