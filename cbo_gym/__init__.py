"""cbo-gym: causal Bayesian optimisation benchmarks as Gymnasium environments, with agents and an evaluator.

Importing the package registers every environment: ``gym.make("CBO/Alpine2-v0")``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cbo_gym import closed
from cbo_gym.agent import Agent, UnsupportedModeError
from cbo_gym.errors import naming_the_extra
from cbo_gym.task import Mode, Round, Task
from cbo_gym.version import __version__

if closed.is_isolated():  # somebody else's agent plays in this process
    closed.close()
else:
    from cbo_gym.notebook import register_display
    from cbo_gym.registry import register_all

    register_all()
    register_display()

# What costs time to import is imported when it is first asked for.
_LAZY = {
    "custom_problem": "cbo_gym.problems.own.custom",
    "load_problem": "cbo_gym.problems.own.problem_file",
    "make_task": "cbo_gym.envs.tasks",
    "Oracle": "cbo_gym.oracle",
    "evaluate": "cbo_gym.evaluation.play.runner",
    "sweep": "cbo_gym.evaluation.play.sweep",
    "leaderboard": "cbo_gym.evaluation.compare.leaderboard",
    "sample": "cbo_gym.exchange.samples",
    "optuna_objective": "cbo_gym.exchange.optuna_objective",
    "botorch_function": "cbo_gym.exchange.botorch_function",
}

__all__ = ["Agent", "Mode", "Round", "Task", "UnsupportedModeError", "__version__", *_LAZY]

if TYPE_CHECKING:  # _LAZY in words that type checkers follow; a test holds the two together
    from cbo_gym.envs.tasks import make_task as make_task
    from cbo_gym.evaluation.compare.leaderboard import leaderboard as leaderboard
    from cbo_gym.evaluation.play.runner import evaluate as evaluate
    from cbo_gym.evaluation.play.sweep import sweep as sweep
    from cbo_gym.exchange.botorch_function import botorch_function as botorch_function
    from cbo_gym.exchange.optuna_objective import optuna_objective as optuna_objective
    from cbo_gym.exchange.samples import sample as sample
    from cbo_gym.oracle import Oracle as Oracle
    from cbo_gym.problems.own.custom import custom_problem as custom_problem
    from cbo_gym.problems.own.problem_file import load_problem as load_problem
else:  # hidden from type checkers, so that they report misspelt names

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            with naming_the_extra(f"cbo_gym.{name}"):
                return getattr(import_module(_LAZY[name]), name)
        raise AttributeError(f"module 'cbo_gym' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LAZY})
