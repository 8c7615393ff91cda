"""Content of a report: each table and figure once, from which files, page and notebook are rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from cbo_gym.evaluation.comparison.leaderboard import Leaderboard
from cbo_gym.evaluation.comparison.provenance import completeness, incomplete_rows, provenance_sentences
from cbo_gym.evaluation.comparison.significance import ranking
from cbo_gym.evaluation.report import tables
from cbo_gym.evaluation.report.curves import LineStyles, by_env
from cbo_gym.evaluation.report.figures import ReportFigure, env_figures, group_figures
from cbo_gym.evaluation.report.palette import file_names, line_styles
from cbo_gym.evaluation.report.tables import CaptionedTable, Table

#: Number of decimals of probabilities on the page, so that many columns fit.
PAGE_DECIMALS = 2


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
        styles: styles of its agents, in the order of their names.
        groups: sections of groups.
        envs: sections of environments with a finished or failed run.
        special: tables that few leaderboards have.
        coverage: numbers of runs of every pair.
        papers: captions and tables for a paper, by name of file.
        provenance: origin of the numbers, and sentences on differences among the runs.
        incomplete: what the sweep lacks; empty if it is complete.
        unfinished: runs without a score, and the reasons.
    """

    board: Leaderboard
    styles: LineStyles
    groups: Sequence[Section]
    envs: Sequence[Section]
    special: Sequence[Section]
    coverage: Table
    papers: Mapping[str, Sequence[CaptionedTable]]
    provenance: Sequence[str]
    incomplete: str
    unfinished: Sequence[tuple[str, str]]

    @property
    def figures(self) -> list[ReportFigure]:
        """Figures of all sections."""
        return [figure for section in (*self.groups, *self.envs) for figure in section.figures.values()]


def report_of(board: Leaderboard) -> Report:
    """Compute the content of a leaderboard's report."""
    rankings = {group: ranking(board, group) for group in board.groups}
    envs = file_names(set(board.per_env["env"]))
    of_groups = {
        group: {
            "overall": tables.with_ranks(tables.overall_table(board, group), ranked),
            "pairs": tables.improvement_table(board, group, PAGE_DECIMALS),
        }
        for group, ranked in rankings.items()
    }
    of_envs = {env: {"means": tables.env_table(board, env), "choices": tables.choice_table(board, env)} for env in envs}
    special = [
        Section("GAP and PA-GAP", "gap", tables.GAP_NOTE, tables.gap_tables(board)),
        Section("Without the true graph", "graph-loss", tables.GRAPH_LOSS_NOTE, tables.graph_loss_tables(board)),
        Section("On instances", "instances", tables.INSTANCES_NOTE, tables.instance_tables(board)),
    ]
    coverage, papers = tables.coverage_table(board), tables.paper_tables(board, rankings, of_envs)
    styles = dict(sorted(line_styles(board.table["agent"]).items(), key=lambda item: item[0].lower()))
    runs = by_env(board.runs)
    groups = []
    for group, file in file_names(board.groups).items():
        note = ranked if isinstance(ranked := rankings[group], str) else f"{ranked.test_in_short}."
        figures = group_figures(board, group, file, ranked, styles)
        groups.append(Section(group, file, note, of_groups[group], figures))
    return Report(
        board,
        styles,
        groups,
        [
            Section(env, file, "", of_envs[env], env_figures(env, file, runs[env], styles) if env in runs else {})
            for env, file in envs.items()
        ],
        [section for section in special if section.tables],
        coverage,
        papers,
        provenance_sentences(board),
        completeness(board),
        incomplete_rows(board),
    )
