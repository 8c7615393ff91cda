"""The figures of a report: what each shows, its file, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from cbo_gym.drawing.html import svg_of
from cbo_gym.evaluation.comparison.leaderboard import ALL_MODES, Leaderboard, known_improvement
from cbo_gym.evaluation.comparison.significance import Ranking
from cbo_gym.evaluation.metrics.targets import has_targets
from cbo_gym.evaluation.report import curves, plots
from cbo_gym.evaluation.report.curves import CurvesFigure, LineStyles
from cbo_gym.evaluation.runs.counted import without_blind_runs
from cbo_gym.evaluation.runs.results import Run

# Horizontal axes of figures of an environment: suffix of the file, axis, and addition to the caption.
AGAINST: tuple[tuple[str, curves.AxisType, str], ...] = (
    ("", curves.Rounds, ""),
    ("-cost", curves.CostPaid, " Against the cost paid: a run has the value that it had reached at that cost."),
)


class ReportFigure(NamedTuple):
    """A figure of a report.

    Attributes:
        file: name of the file without a suffix.
        draw: function that draws the figure with Matplotlib.
        curves: curves of its interactive chart; None without a chart.
        caption: caption of the chart.
        by_agent: whether each line of the chart is an agent.
        on_page: whether the page shows the drawing, instead of a chart.
    """

    file: str
    draw: Callable[[], Figure]
    curves: CurvesFigure | None = None
    caption: str = ""
    by_agent: bool = True
    on_page: bool = False


def group_figures(
    board: Leaderboard, group: str, file: str, ranked: Ranking | str, styles: LineStyles
) -> dict[str, ReportFigure]:
    """Return kind -> figure of a group; ``file`` is the end of the names of their files."""
    content = curves.profile_figure(board, group, styles)
    functions = {"scores": partial(plots.score_intervals, board, group, styles)}
    if known_improvement(board, group).height:
        functions["improvement"] = partial(plots.improvement_matrix, board, group)
    runs = without_blind_runs(board.runs)
    if timed := [run for run in runs if has_targets(run) and group in (ALL_MODES, run.mode)]:
        functions["targets"] = partial(plots.draw_targets, timed, styles)
    if isinstance(ranked, Ranking):
        functions["ranks"] = partial(plots.critical_differences, ranked, styles)
    figures = {
        kind: ReportFigure(f"{kind}-{file}", function, on_page=kind == "targets")
        for kind, function in functions.items()
    }
    profiles = partial(plots.draw_profiles, group, content)
    figures["profiles"] = ReportFigure(f"profiles-{file}", profiles, content, f"{content.note}.")
    return figures


def env_figures(env: str, file: str, runs: Sequence[Run], styles: LineStyles) -> dict[str, ReportFigure]:
    """Return kind -> figure of an environment: its Pareto front, and regrets and choices against rounds and costs."""
    figures = {}
    if front := curves.known_front(runs):
        draw = partial(plots.draw_fronts, env, runs, front, styles)
        figures["front"] = ReportFigure(f"front-{file}", draw, on_page=True)
    axes = AGAINST if all(map(curves.has_costs, runs)) else AGAINST[:1]
    for suffix, against, remark in axes:
        kind, content = f"regret{suffix}", curves.regret_figure(runs, styles, against)
        draw = partial(plots.draw_regrets, {env: content})
        figures[kind] = ReportFigure(f"{kind}-{file}", draw, content, f"{content.note}.{remark}")
        if any(run.choices for run in runs):
            kind, content = f"choices{suffix}", curves.choice_figure(runs, styles, against)
            draw = partial(plots.draw_choices, env, content)
            figures[kind] = ReportFigure(f"{kind}-{file}", draw, content, f"{content.note}.{remark}", by_agent=False)
    return figures


def write_figures(
    figures: Sequence[ReportFigure], folder: Path, formats: Sequence[str], on_figure: Callable[[int, int], object]
) -> dict[str, str]:
    """Write figures in the given formats; return file -> SVG of the drawings that the page shows."""
    plots.require_formats(formats)
    drawings = {}
    for count, figure in enumerate(figures, start=1):
        if not formats and not figure.on_page:
            continue
        drawing = figure.draw()
        if formats:
            plots.save(drawing, folder, figure.file, formats)
            on_figure(count, len(figures))
        if figure.on_page:
            drawings[figure.file] = svg_of(drawing)
    return drawings
