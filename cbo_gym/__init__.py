"""cbo-gym: causal Bayesian optimisation benchmarks as Gymnasium environments, with agents and an evaluator.

Importing the package registers every environment: ``gym.make("CBO/Alpine2-v0")``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cbo_gym.agent import Agent, UnsupportedModeError
from cbo_gym.registry import register_all
from cbo_gym.task import Mode, Round, Task
from cbo_gym.version import __version__

register_all()

# What costs time to import is imported when it is first asked for.
_LAZY = {
    "custom_problem": "cbo_gym.problems.custom",
    "load_problem": "cbo_gym.problems.custom",
    "make_task": "cbo_gym.envs.tasks",
    "Oracle": "cbo_gym.oracle",
    "evaluate": "cbo_gym.evaluation",
    "sweep": "cbo_gym.evaluation",
    "leaderboard": "cbo_gym.evaluation",
}

__all__ = ["Agent", "Mode", "Round", "Task", "UnsupportedModeError", "__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'cbo_gym' has no attribute {name!r}")
