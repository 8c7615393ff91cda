"""The evaluator: play agents on environments, score and store their runs, and compare agents."""

from cbo_gym.errors import naming_the_extra

with naming_the_extra("cbo_gym.evaluation"):
    from cbo_gym.evaluation.comparison.leaderboard import Leaderboard, leaderboard
    from cbo_gym.evaluation.comparison.pairwise import Comparison, compare
    from cbo_gym.evaluation.play.callbacks import PlayedRound
    from cbo_gym.evaluation.play.playing import AgentError
    from cbo_gym.evaluation.play.runner import evaluate
    from cbo_gym.evaluation.play.sweep import Execution, sweep
    from cbo_gym.evaluation.runs.folder import DamagedRunWarning, load_runs
    from cbo_gym.evaluation.runs.results import Run, load_run
    from cbo_gym.evaluation.store.published import load_published, publish

__all__ = [
    "AgentError",
    "Comparison",
    "DamagedRunWarning",
    "Execution",
    "Leaderboard",
    "PlayedRound",
    "Run",
    "compare",
    "evaluate",
    "leaderboard",
    "load_published",
    "load_run",
    "load_runs",
    "publish",
    "sweep",
]
