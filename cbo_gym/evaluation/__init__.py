"""The evaluator: run agents on environments, score them, store, compare."""

from cbo_gym.errors import naming_the_extra

with naming_the_extra("cbo_gym.evaluation"):
    from cbo_gym.evaluation.folder import DamagedRunWarning, load_runs
    from cbo_gym.evaluation.leaderboard import Leaderboard, leaderboard
    from cbo_gym.evaluation.published import load_published, publish
    from cbo_gym.evaluation.results import Run, load_run
    from cbo_gym.evaluation.runner import AgentError, evaluate
    from cbo_gym.evaluation.sweep import sweep

__all__ = [
    "AgentError",
    "DamagedRunWarning",
    "Leaderboard",
    "Run",
    "evaluate",
    "leaderboard",
    "load_published",
    "load_run",
    "load_runs",
    "publish",
    "sweep",
]
