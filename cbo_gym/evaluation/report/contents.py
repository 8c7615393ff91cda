"""Content of a report: each table and figure once, from which files, page and notebook are rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from cbo_gym.errors import printable
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.compare.significance import TEST, Ranking, ranking
from cbo_gym.evaluation.metrics.targets import has_targets
from cbo_gym.evaluation.report import curves, plots, tables
from cbo_gym.evaluation.report.curves import CurvesFigure, Looks
from cbo_gym.evaluation.report.palette import file_names, looks
from cbo_gym.evaluation.report.tables import CaptionedTable, Table
from cbo_gym.evaluation.runs.results import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_COLUMNS = ("iqm", "score", "average_score", "seconds")  # those that fit a page
PAGE_DECIMALS = 2  # of probabilities, that many of them fit beside each other
AGAINST: tuple[tuple[str, type[curves.Horizontal], str], ...] = (
    ("", curves.Rounds, ""),
    ("-cost", curves.CostPaid, " Against the cost paid: a run counts with what it had reached by then."),
)


class ReportFigure(NamedTuple):
    """A figure of a report.

    Attributes:
        file: its name without a suffix.
        draw: makes it with Matplotlib.
        curves: what an interactive chart of it shows; None of those that have none.
        caption: of the chart.
        by_agent: whether the lines of the chart are of agents.
        on_page: whether the page shows the drawing itself.
    """

    file: str
    draw: Callable[[], Figure]
    curves: CurvesFigure | None = None
    caption: str = ""
    by_agent: bool = True
    on_page: bool = False


@dataclass(frozen=True)
class GroupPart:
    """A group of the leaderboard: its name, its file name, tables, and figures by kind."""

    name: str
    file: str
    ranking: Ranking | str
    overall: Table
    pairs: Table
    figures: Mapping[str, ReportFigure]

    @property
    def title(self) -> str:
        """The name with its first letter as a capital."""
        return self.name[:1].upper() + self.name[1:]


@dataclass(frozen=True)
class EnvPart:
    """An environment of the leaderboard: its label, its file name, tables, and figures by kind."""

    name: str
    file: str
    means: Table
    choices: Table
    figures: Mapping[str, ReportFigure]


@dataclass(frozen=True)
class SpecialTables:
    """Tables that few leaderboards have, by their titles."""

    id: str
    title: str
    note: str
    tables: Mapping[str, Table]


@dataclass(frozen=True)
class Report:
    """What a report of a leaderboard shows.

    Attributes:
        board: the leaderboard.
        looks: of its agents, in the order of their names.
        groups, envs: the parts of groups and of environments that somebody finished or failed.
        special: tables that few leaderboards have.
        coverage: the fate of every pair.
        papers: name of a file -> captions and tables for a paper, whose best cells are to be set in bold.
    """

    board: Leaderboard
    looks: Looks
    groups: Sequence[GroupPart]
    envs: Sequence[EnvPart]
    special: Sequence[SpecialTables]
    coverage: Table
    papers: Mapping[str, Sequence[CaptionedTable]]

    @property
    def figures(self) -> list[ReportFigure]:
        """The figures of all parts."""
        parts = [*(group.figures for group in self.groups), *(env.figures for env in self.envs)]
        return [figure for part in parts for figure in part.values()]


def report_of(board: Leaderboard) -> Report:
    """Work out the content of a leaderboard's report."""
    found = looks(board.table["agent"])
    styles = {agent: found[agent] for agent in sorted(found, key=str.lower)}
    groups = [_group(board, group, file, styles) for group, file in file_names(board.groups).items()]
    played, tried = curves.by_env(board.runs), set(board.per_env["env"])
    envs = [
        _env(board, env, file, played.get(env, []), styles)
        for env, file in file_names(board.table["env"]).items()
        if env in tried
    ]
    special = [
        SpecialTables("gap", "GAP and PA-GAP", tables.GAP_NOTE, tables.gap_tables(board)),
        SpecialTables("graph-loss", "Without the true graph", tables.GRAPH_LOSS_NOTE, tables.graph_loss_tables(board)),
        SpecialTables("instances", "On instances", tables.INSTANCES_NOTE, tables.instance_tables(board)),
    ]
    return Report(
        board,
        styles,
        groups,
        envs,
        [one for one in special if one.tables],
        tables.coverage_table(board),
        _papers(board, groups, envs),
    )


def _group(board: Leaderboard, group: str, file: str, styles: Looks) -> GroupPart:
    ranked, shown = ranking(board, group), curves.profile_figure(board, group, styles)
    draw = {
        "scores": partial(plots.score_intervals, board, group, styles),
        "improvement": partial(plots.improvement_matrix, board, group),
    }
    if timed := [run for run in board.runs if has_targets(run) and group in (ALL_MODES, run.mode)]:
        draw["targets"] = partial(plots.draw_targets, timed, styles)
    if isinstance(ranked, Ranking):
        draw["ranks"] = partial(plots.critical_differences, ranked, styles)
    figures = {kind: ReportFigure(f"{kind}-{file}", one, on_page=kind == "targets") for kind, one in draw.items()}
    profiles = partial(plots.draw_profiles, group, shown)
    figures["profiles"] = ReportFigure(f"profiles-{file}", profiles, shown, f"{shown.note}.")
    table = tables.with_ranks(tables.overall_table(board, group), ranked)
    return GroupPart(group, file, ranked, table, tables.improvement_table(board, group, PAGE_DECIMALS), figures)


def _env(board: Leaderboard, env: str, file: str, runs: Sequence[Run], styles: Looks) -> EnvPart:
    figures = dict(_env_figures(env, file, runs, styles)) if runs else {}
    return EnvPart(env, file, tables.env_table(board, env), tables.choice_table(board, env), figures)


def _env_figures(env: str, file: str, runs: Sequence[Run], styles: Looks) -> Iterator[tuple[str, ReportFigure]]:
    """Regrets and choices against rounds, and where all actions have costs against these; the Pareto front."""
    if plots.has_fronts(runs):
        yield "front", ReportFigure(f"front-{file}", partial(plots.draw_fronts, env, runs, styles), on_page=True)
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
    board: Leaderboard, groups: Sequence[GroupPart], envs: Sequence[EnvPart]
) -> dict[str, list[CaptionedTable]]:
    overall, improvement = [], []
    for group in groups:
        caption = f"{group.title}: scores over environments with 95 % intervals."
        if isinstance(group.ranking, Ranking):
            caption += f" Agents that share a letter are not told apart: {TEST}; {group.ranking.test_in_short}."
        overall.append(
            (caption, tables.with_ranks(tables.overall_table(board, group.name, PAPER_COLUMNS), group.ranking))
        )
        if board.improvement.filter(pl.col("group") == group.name).height:
            caption = (
                f"{group.title}: probability that a run of the agent in the row scores higher than one in the column."
            )
            improvement.append((caption, tables.improvement_table(board, group.name)))
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
        (f"{printable(env.name)}: share of rounds in which each was chosen.", env.choices)
        for env in envs
        if env.choices.rows
    ]
    return {"overall": overall, "per_env": per_env, "improvement": improvement, "choices": choices}
