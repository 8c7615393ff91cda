"""Runs and leaderboards on display: figures on request, and in notebooks at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from cbo_gym.arguments import require_word
from cbo_gym.drawing.html import facts, svg_of, table
from cbo_gym.errors import ArgumentError, naming_the_extra
from cbo_gym.evaluation.compare.leaderboard import Leaderboard
from cbo_gym.evaluation.report.plots import performance_profiles, regret_curves, score_intervals
from cbo_gym.evaluation.report.tables import SCORE_NOTE, completeness, overall_table
from cbo_gym.evaluation.runs.results import Run, last_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Kind = Literal["regret", "scores", "profiles"]
MOST_ENVS = 12  # rows of panels that a notebook shows unasked
FEW_COLUMNS = ("iqm", "average_score", "seconds")
TABLES = ("overall", "per_env", "profiles", "improvement", "choices", "table")


def plot_run(run: Run) -> Figure:
    """Average and simple regret against rounds, see :func:`~cbo_gym.evaluation.report.plots.regret_curves`.

    Raises:
        ArgumentError: if the run did not finish.
    """
    if run.status != "finished":
        raise ArgumentError(f"a run that {run.status} has nothing to plot: {last_line(run.error)}")
    return regret_curves([run])


def show_run(run: Run) -> str:
    """A run for a notebook: its facts, where it ended, and its curves."""
    about: list[tuple[str, object]] = [
        ("agent", run.agent), ("environment", run.env), ("seed", run.seed), ("rounds", run.horizon),
    ]  # fmt: skip
    if run.status != "finished":
        return facts(f"Run, {run.status}", [*about, ("why", last_line(run.error))])
    last = run.table.row(-1, named=True)
    about += [
        ("optimum", f"{run.optimum:.5g}"),
        ("best expected reward", f"{run.curve('expected_reward').max():.5g}"),
        ("expected reward of the recommendation", f"{last['recommended_reward']:.5g}"),
        ("simple regret", f"{last['simple_regret']:.4g}"),
        ("average regret", f"{last['average_regret']:.4g}"),
        ("seconds a round", f"{run.seconds_a_round:.3g}"),
    ]
    return facts("Run", about) + svg_of(plot_run(run))


def plot_board(board: Leaderboard, kind: Kind = "regret", group: str | None = None) -> Figure:
    """Agents compared in one figure, which belongs to no window.

    Args:
        board: what is drawn.
        kind: ``"regret"`` against rounds, a row of panels an environment; ``"scores"`` with their intervals; or
            performance ``"profiles"``.
        group: the feedback mode of the last two, or ``"all modes"``; the first of the leaderboard's by default.

    Raises:
        ArgumentError: for another kind or group.
    """
    group = board.groups[0] if group is None else group
    drawn: dict[str, Callable[[], Figure]] = {
        "regret": lambda: regret_curves(board.runs),
        "scores": lambda: score_intervals(board, group),
        "profiles": lambda: performance_profiles(board, group),
    }
    require_word("kind", kind, drawn)
    require_word("group", group, board.groups)
    return drawn[kind]()


def show_board(board: Leaderboard) -> str:
    """The tables over environments, and the curves where there are few."""
    shown = [
        table(f"{group.capitalize()}, over environments", found.header, found.lines)
        for group in board.groups
        for found in [overall_table(board, group, FEW_COLUMNS)]
    ]
    notes = [f"<p>{text}</p>" for text in (completeness(board), SCORE_NOTE) if text]
    few = board.per_env["env"].n_unique() <= MOST_ENVS
    return "".join([*shown, *notes, svg_of(plot_board(board)) if few else ""])


def board_to_pandas(board: Leaderboard, name: str = "overall") -> pd.DataFrame:
    """One of the leaderboard's tables as a data frame of pandas.

    Args:
        board: whose table it is.
        name: ``"overall"``, ``"per_env"``, ``"profiles"``, ``"improvement"``, ``"choices"``, or ``"table"``, which
            has one row per run.

    Raises:
        ArgumentError: for another name.
        MissingExtraError: without pandas or pyarrow.
    """
    require_word("name", name, TABLES)
    frame: Any = getattr(board, name)
    with naming_the_extra("a data frame of pandas"):
        return frame.to_pandas()
