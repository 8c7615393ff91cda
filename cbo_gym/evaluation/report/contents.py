"""The content of a report: all of its tables and figures, which other modules write as files and as a page."""

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

# Number of decimals of probabilities on the page, so that many columns fit.
PAGE_DECIMALS = 2


class Section(NamedTuple):
    """Section of a report: a group, an environment, or tables that few leaderboards have.

    Attributes:
        name: title of the section: the label of the environment, or the name of the group.
        file: the name in a form for file names and for links on the page.
        note: remark on the tables; may be empty.
        tables: kind or title of a table -> table.
        figures: kind of a figure -> figure.
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
        styles: agent -> style of its lines, in the order of their names.
        groups: sections of groups.
        envs: sections of environments with a finished or failed run.
        special: sections with tables that few leaderboards have.
        coverage: numbers of runs of each agent on each environment.
        papers: name of a file for a paper -> its tables, with captions.
        provenance: sentences on the origin of the numbers.
        incomplete: what the sweep lacks; empty if it is complete.
        unfinished: descriptions of runs without a score, and the reasons.
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
    special = [
        Section("GAP and PA-GAP", "gap", tables.GAP_NOTE, tables.gap_tables(board)),
        Section("Without the true graph", "graph-loss", tables.GRAPH_LOSS_NOTE, tables.graph_loss_tables(board)),
        Section("On instances", "instances", tables.INSTANCES_NOTE, tables.instance_tables(board)),
    ]
    styles = dict(sorted(line_styles(board.table["agent"]).items(), key=lambda item: item[0].lower()))
    groups = []
    for group, file in file_names(board.groups).items():
        ranked = rankings[group]
        note = ranked if isinstance(ranked, str) else f"{ranked.test_in_short}."
        overall = tables.with_ranks(tables.overall_table(board, group), ranked)
        pairs = tables.improvement_table(board, group, PAGE_DECIMALS)
        figures = group_figures(board, group, file, ranked, styles)
        groups.append(Section(group, file, note, {"overall": overall, "pairs": pairs}, figures))
    runs, envs = by_env(board.runs), []
    for env, file in file_names(set(board.per_env["env"])).items():
        env_tables = {"means": tables.env_table(board, env), "choices": tables.choice_table(board, env)}
        figures = env_figures(env, file, runs[env], styles) if env in runs else {}
        envs.append(Section(env, file, "", env_tables, figures))
    return Report(
        board=board,
        styles=styles,
        groups=groups,
        envs=envs,
        special=[section for section in special if section.tables],
        coverage=tables.coverage_table(board),
        papers=tables.paper_tables(board, rankings, {section.name: section.tables for section in envs}),
        provenance=provenance_sentences(board),
        incomplete=completeness(board),
        unfinished=incomplete_rows(board),
    )
