"""Content of a report: each table and figure once, from which files, page and notebook are rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import polars as pl
from matplotlib.figure import Figure

from cbo_gym.errors import printable
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.compare.significance import TEST, Ranking, ranking
from cbo_gym.evaluation.metrics.targets import has_targets
from cbo_gym.evaluation.report import curves, plots, tables
from cbo_gym.evaluation.report.curves import CurvesFigure, Looks
from cbo_gym.evaluation.report.palette import file_names, looks
from cbo_gym.evaluation.report.tables import CaptionedTable, Table
from cbo_gym.evaluation.runs.counted import without_blind_runs
from cbo_gym.evaluation.runs.results import Run

#: Columns that fit a page.
PAPER_COLUMNS = ("iqm", "score", "average_score", "seconds")
#: Number of decimals of probabilities on the page, so that many columns fit.
PAGE_DECIMALS = 2
AGAINST: tuple[tuple[str, curves.Against, str], ...] = (
    ("", curves.Rounds, ""),
    ("-cost", curves.CostPaid, " Against the cost paid: a run counts with the value that it had reached by then."),
)


class ReportFigure(NamedTuple):
    """Figure of a report.

    Attributes:
        file: name of the file without a suffix.
        draw: function that draws the figure with Matplotlib.
        curves: curves of its interactive chart; None if it has no chart.
        caption: caption of the chart.
        by_agent: whether the lines of the chart are those of agents.
        on_page: whether the page shows the drawing itself.
    """

    file: str
    draw: Callable[[], Figure]
    curves: CurvesFigure | None = None
    caption: str = ""
    by_agent: bool = True
    on_page: bool = False


class Section(NamedTuple):
    """Section of a report: a group, an environment, or tables that few leaderboards have.

    Attributes:
        name: title of the section, label of the environment, or name of the group.
        file: form of the name for file names and for the page's address.
        note: remark on the tables.
        tables: tables by kind or title.
        figures: figures by kind.
    """

    name: str
    file: str
    note: str
    tables: Mapping[str, Table]
    figures: Mapping[str, ReportFigure] = MappingProxyType({})


class Report(NamedTuple):
    """Content of a report of a leaderboard.

    Attributes:
        board: the leaderboard.
        looks: looks of its agents, in the order of their names.
        groups: sections of groups.
        envs: sections of environments with a finished or failed run.
        special: tables that few leaderboards have.
        coverage: numbers of runs of every pair.
        papers: captions and tables for a paper, by name of file.
    """

    board: Leaderboard
    looks: Looks
    groups: Sequence[Section]
    envs: Sequence[Section]
    special: Sequence[Section]
    coverage: Table
    papers: Mapping[str, Sequence[CaptionedTable]]

    @property
    def figures(self) -> list[ReportFigure]:
        """Figures of all sections."""
        return [figure for section in (*self.groups, *self.envs) for figure in section.figures.values()]


def report_of(board: Leaderboard) -> Report:
    """Compute the content of a leaderboard's report."""
    all_looks = looks(board.table["agent"])
    styles = {agent: all_looks[agent] for agent in sorted(all_looks, key=str.lower)}
    rankings = {group: ranking(board, group) for group in board.groups}
    groups = [_group(board, group, file, rankings[group], styles) for group, file in file_names(board.groups).items()]
    played, tried = curves.by_env(board.runs), set(board.per_env["env"])
    envs = [
        Section(
            env,
            file,
            "",
            {"means": tables.env_table(board, env), "choices": tables.choice_table(board, env)},
            dict(_env_figures(env, file, played[env], styles)) if env in played else {},
        )
        for env, file in file_names(board.table["env"]).items()
        if env in tried
    ]
    special = [
        Section("GAP and PA-GAP", "gap", tables.GAP_NOTE, tables.gap_tables(board)),
        Section("Without the true graph", "graph-loss", tables.GRAPH_LOSS_NOTE, tables.graph_loss_tables(board)),
        Section("On instances", "instances", tables.INSTANCES_NOTE, tables.instance_tables(board)),
    ]
    special = [section for section in special if section.tables]
    papers = _papers(board, rankings, [env for env in envs if env.tables["choices"].rows])
    return Report(board, styles, groups, envs, special, tables.coverage_table(board), papers)


def _group(board: Leaderboard, group: str, file: str, ranked: Ranking | str, styles: Looks) -> Section:
    shown = curves.profile_figure(board, group, styles)
    draw = {
        "scores": partial(plots.score_intervals, board, group, styles),
        "improvement": partial(plots.improvement_matrix, board, group),
    }
    runs = without_blind_runs(board.runs)
    if timed := [run for run in runs if has_targets(run) and group in (ALL_MODES, run.mode)]:
        draw["targets"] = partial(plots.draw_targets, timed, styles)
    if isinstance(ranked, Ranking):
        draw["ranks"] = partial(plots.critical_differences, ranked, styles)
    figures = {
        kind: ReportFigure(f"{kind}-{file}", function, on_page=kind == "targets") for kind, function in draw.items()
    }
    profiles = partial(plots.draw_profiles, group, shown)
    figures["profiles"] = ReportFigure(f"profiles-{file}", profiles, shown, f"{shown.note}.")
    overall = tables.with_ranks(tables.overall_table(board, group), ranked)
    pairs = tables.improvement_table(board, group, PAGE_DECIMALS)
    note = ranked if isinstance(ranked, str) else f"{ranked.test_in_short}."
    return Section(group, file, note, {"overall": overall, "pairs": pairs}, figures)


def _env_figures(env: str, file: str, runs: Sequence[Run], styles: Looks) -> Iterator[tuple[str, ReportFigure]]:
    """Yield the Pareto front if it is known, and regrets and choices against rounds, and against costs if all have."""
    if front := plots.known_front(runs):
        yield "front", ReportFigure(f"front-{file}", partial(plots.draw_fronts, env, runs, front, styles), on_page=True)
    for suffix, against, remark in AGAINST if all(map(curves.has_costs, runs)) else AGAINST[:1]:
        shown = curves.regret_figure(runs, styles, against)
        draw = partial(plots.draw_regrets, {env: shown})
        kind = f"regret{suffix}"
        yield kind, ReportFigure(f"{kind}-{file}", draw, shown, f"{shown.note}.{remark}")
        if any(run.choices for run in runs):
            shown = curves.choice_figure(runs, styles, against)
            draw = partial(plots.draw_choices, env, shown)
            kind = f"choices{suffix}"
            yield kind, ReportFigure(f"{kind}-{file}", draw, shown, f"{shown.note}.{remark}", by_agent=False)


def _papers(
    board: Leaderboard, rankings: Mapping[str, Ranking | str], choosing: Sequence[Section]
) -> dict[str, list[CaptionedTable]]:
    overall, improvement = [], []
    for group, ranked in rankings.items():
        title = group.capitalize()
        caption = f"{title}: scores over environments with 95 % intervals."
        if isinstance(ranked, Ranking):
            caption += f" Agents that share a letter do not differ significantly: {TEST}; {ranked.test_in_short}."
        overall.append((caption, tables.with_ranks(tables.overall_table(board, group, PAPER_COLUMNS), ranked)))
        if board.improvement.filter(pl.col("group") == group).height:
            caption = f"{title}: probability that a run of the agent in the row scores higher than one in the column."
            improvement.append((caption, tables.improvement_table(board, group)))
    per_env = [
        (
            f"{mode.capitalize()}: score of the recommendation after the last round, mean over {board.seeds} seeds "
            "with half the width of its 95 % t-interval; in brackets the number of seeds where it is another.",
            tables.score_table(board, mode),
        )
        for mode in board.groups
        if mode != ALL_MODES
    ]
    choices = [
        (f"{printable(env.name)}: share of rounds in which each was chosen.", env.tables["choices"]) for env in choosing
    ]
    return {"overall": overall, "per_env": per_env, "improvement": improvement, "choices": choices}
