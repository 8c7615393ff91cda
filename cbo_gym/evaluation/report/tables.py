"""Tables of a leaderboard as rows of formatted cells, for the terminal, HTML, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import polars as pl

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import printable
from cbo_gym.evaluation.comparison.leaderboard import (
    ALL_MODES,
    ENOUGH_SEEDS,
    Leaderboard,
    compared_agents,
    compared_over_envs,
    final_numbers,
    known_improvement,
)
from cbo_gym.evaluation.comparison.significance import TEST, Ranking
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS, half_width, welch_half_width
from cbo_gym.evaluation.metrics.gap import BUDGETS, EXPECTED, SURVEY
from cbo_gym.evaluation.metrics.registry import METRICS
from cbo_gym.evaluation.runs.counted import without_keywords
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.suites import is_compared_by
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

# Column of ``Leaderboard.overall`` or ``improvement`` -> its title.
OVERALL = {
    "iqm": "interquartile mean",
    "score": "mean score",
    "average_score": "score of play",
    "probability": "P(first scores higher)",
    "seconds": "seconds a round",
    "run_seconds": "seconds a run",
}
# Column by which agents are compared -> function that returns the best of several values.
RANKED: dict[str, Callable[[Any], Any]] = {
    "iqm": max,
    **{name: metric.best for name, metric in METRICS.items() if metric.over_envs and metric.best},
}
# Title of a column -> its explanation.
HEADS = {
    "envs": "environments that the agent finished, of those of the mode",
    "interquartile mean": "mean of the middle half of the scores of the recommendation",
    "mean score": "mean of the scores of the recommendation",
    "score of play": "mean score of all rounds as they were played",
    "P(first scores higher)": "probability that a run of the agent in the first row scores higher",
    "seconds a round": "act, update and recommend together",
    "mean rank": "mean over environments; 1 is the best",
    "not distinguished": "agents with a letter in common may be equally good",
}
# Columns of ``OVERALL`` that fit a printed page.
PAPER_COLUMNS = ("iqm", "score", "average_score", "seconds")
MISSING = "-"
# Note next to every table of scores.
SCORE_NOTE = (
    "Score: 0 is the mean of a random action, 1 the optimum. It is of the action recommended after the last round, so "
    "that random play that recommends the best that it saw scores above 0 in most tasks; the score of play "
    "is of all rounds as they were played."
)
SECONDS_NOTE = "Seconds a round: act, update and recommend together."
GAP_NOTE = (
    "Improvement over the initial data towards the optimum, at the end and how early (GAP) and over the whole path "
    "(PA-GAP, about 0.5 at most), after so many rounds; higher is better. Expected: of expected rewards, with the true "
    "optimum. Survey's convention: of the best reward observed, noise included, with the references of Huang et al. "
    "(2026); only to be compared with its tables."
)
# Prefix of the columns of a version -> its name.
GAP_VERSIONS = {EXPECTED: "expected", SURVEY: "the survey's convention"}
GRAPH_LOSS_NOTE = "Runs of an agent on the same task with its true graph, seed by seed; higher is a greater loss."
# Score -> title of its column in the tables of losses without the true graph.
LOST = {"score": "of recommendation", "average_score": "of play"}
INSTANCES_NOTE = (
    "Score on the system as published minus the mean over its instances, whose optimum is not published; "
    "runs are not paired, intervals are Welch's."
)
# Score -> its name in the tables of instances.
INSTANCE_SCORES = {"average_score": "play", "score": "recommendation"}


class Cell(NamedTuple):
    """Content of a cell of a table.

    Attributes:
        formatted: the value as a string.
        detail: interval or remark, shown after the value.
        value: the value as a number; None if the cell has no number.
        best: whether the value is the best of those that it is compared with.
    """

    formatted: str
    detail: str = ""
    value: float | None = None
    best: bool = False

    def __str__(self) -> str:
        return f"{self.formatted} {self.detail}" if self.detail else self.formatted


class Table(NamedTuple):
    """Titles of columns, and rows with a cell for each; the first cell of a row is its name."""

    header: list[str]
    rows: list[list[Cell]]

    @property
    def lines(self) -> list[list[str]]:
        """The rows, each cell as one string."""
        return [list(map(str, row)) for row in self.rows]


# Caption and table.
CaptionedTable = tuple[str, Table]


def table_of(titles: Sequence[str], rows: Iterable[Iterable[Any]]) -> Table:
    """Make a table of cells, or of strings, which become cells."""
    return Table(list(titles), [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows])


def overall_table(board: Leaderboard, group: str, columns: Sequence[str] = tuple(OVERALL)) -> Table:
    """Return a table of a group's agents, with scores and their 95 % intervals: ``0.612 [0.553, 0.681]``.

    The best value of each column of :data:`RANKED` is marked, among the agents with all environments of the group and
    enough seeds on each.
    """
    agents = board.overall.filter(pl.col("group") == group)
    of_first = known_improvement(board, group).filter(pl.col("agent") == agents["agent"][0])
    over_others = of_first.select(pl.col("other").alias("agent"), pl.col("^probability.*$"))
    complete = agents.filter(pl.col("envs") == pl.col("of"), ENOUGH_SEEDS)
    values = {name: complete[name].drop_nulls() for name in RANKED} if complete.height > 1 else {}
    best = {name: RANKED[name](values[name]) for name in values if len(values[name])}
    complete_agents = set(complete["agent"])
    rows = []
    for row in agents.join(over_others, on="agent", how="left", maintain_order="left").iter_rows(named=True):
        agent = row["agent"]
        seeds = Cell(_seeds(board, row["fewest_seeds"], row["most_seeds"]), _failures(board, group, agent))
        cells = [_metric(row, name) for name in columns]
        if agent in complete_agents:
            cells = [cell._replace(best=best.get(name) == row[name]) for name, cell in zip(columns, cells, strict=True)]
        rows.append([printable(agent), f"{row['envs']} of {row['of']}", seeds, *cells])
    return table_of(["agent", "envs", "seeds", *(OVERALL[name] for name in columns)], rows)


def with_ranks(table: Table, ranking: Ranking | str) -> Table:
    """Add mean ranks and the letters of the test to a table of a group, if there are enough agents to test."""
    if isinstance(ranking, str):
        return table
    letters = {printable(agent): string for agent, string in ranking.letters.items()}
    ranks = {printable(agent): f"{rank:.2f}" for agent, rank in zip(ranking.agents, ranking.ranks, strict=True)}
    rows = [[*row, *(values.get(row[0].formatted, MISSING) for values in (ranks, letters))] for row in table.rows]
    return table_of([*table.header, "mean rank", "not distinguished"], rows)


def _failures(board: Leaderboard, group: str, agent: str) -> str:
    """Return ``(3 failed, scored as random play)``; empty if no seed failed."""
    rows = compared_over_envs(board.per_env).filter(pl.col("agent") == agent)
    if group != ALL_MODES:
        rows = rows.filter(pl.col("mode") == group)
    failed = rows.filter(pl.col("seeds") > 0)["failed"].sum()
    return f"({failed} failed, scored as random play)" if failed else ""


def _seeds(board: Leaderboard, min_seeds: int, max_seeds: int) -> str:
    """Return the number of seeds: ``5``, or ``2-4 of 5`` if there are fewer seeds than elsewhere on the leaderboard."""
    seeds = str(max_seeds) if min_seeds == max_seeds else f"{min_seeds}-{max_seeds}"
    return seeds if min_seeds == board.seeds else f"{seeds} of {board.seeds}"


def _metric(row: Mapping[str, Any], name: str) -> Cell:
    """Format a metric of a row of the leaderboard, with its interval if the row has one."""
    value, reached = row[name], row.get(f"{name}_seeds")
    if value is None:
        return Cell(MISSING if reached is None else f"{reached} of {row['seeds']} seeds")
    if f"{name}_low" in row:
        return with_interval(row, name)
    # Times differ by the machine more than by the agent, so their interval is not shown.
    if f"{name}_half" in row and name != "seconds":
        return number(value, row[f"{name}_half"])
    return Cell(f"{value:.3g}", value=value)


def with_interval(row: Mapping[str, Any], name: str, decimals: int = 3) -> Cell:
    """Format a value and its interval: ``0.612 [0.553, 0.681]``; a null interval, or one without width, is left out."""
    value = row[name]
    if value is None:
        return Cell(MISSING)
    formatted = f"{value:.{decimals}f}"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low is None:
        return Cell(formatted, value=value)
    low, high = f"{low:.{decimals}f}", f"{high:.{decimals}f}"
    return Cell(formatted, "" if low == high == formatted else f"[{low}, {high}]", value)


def env_table(board: Leaderboard, env: str) -> Table:
    """Return a table of an environment's agents: means with half their 95 % intervals, numbers of seeds and failures.

    Columns that only some environments have come last: rounds to a score, total costs, the fraction of feasible
    actions.
    """
    agents = board.per_env.filter(pl.col("env") == env)
    titles = {}
    for name, metric in METRICS.items():
        has_values = metric.column != "never" and agents[f"{name}_seeds" if metric.censored else name].count()
        if metric.column == "always" or has_values:
            titles[name] = metric.title
    rows = []
    for row in agents.iter_rows(named=True):
        failures = f"({row['failed']} failed)" if row["failed"] else ""
        seeds = Cell(_seeds(board, row["seeds"], row["seeds"]), failures)
        rows.append([printable(row["agent"]), seeds, *(_metric(row, name) for name in titles)])
    return table_of(["agent", "seeds", *titles.values()], rows)


def number(mean: float | None, half: float | None) -> Cell:
    """Format a mean and half its interval (None or NaN if unknown) with two digits of the latter: ``12.3 ± 4.5``."""
    if mean is None:
        return Cell(MISSING)
    if not half or math.isnan(half):
        return Cell(f"{mean:.4g}", value=mean)
    decimals = max(0, 1 - math.floor(math.log10(half)))
    if decimals > 4:
        return Cell(f"{mean:.3g}", f"± {half:.2g}", mean)
    return Cell(f"{mean:,.{decimals}f}", f"± {half:,.{decimals}f}", mean)


def score_table(board: Leaderboard, mode: str) -> Table:
    """Return a table of scores of recommendations: a row per environment, a column per agent, with the best marked."""
    rows = board.per_env.filter(pl.col("mode") == mode)
    envs, agents = (rows[name].unique().sort().to_list() for name in ("env", "agent"))
    score, has_rank = pl.col("score"), pl.col("seeds") >= MIN_SEEDS
    best = has_rank & (score == score.filter(has_rank).max().over("env")) & (has_rank.sum().over("env") > 1)
    cells = {}
    for row in rows.filter(score.is_not_null()).with_columns(best=best).iter_rows(named=True):
        cell = number(row["score"], row["score_half"])
        remark = f"({row['seeds']})" if row["seeds"] != board.seeds else ""
        cells[row["env"], row["agent"]] = cell._replace(detail=f"{cell.detail} {remark}".strip(), best=row["best"])
    return _matrix("environment", envs, agents, cells)


def _matrix(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Cell | str],
    empty: str = MISSING,
) -> Table:
    """Make a table of cells whose keys are the names of row and column."""
    body = [[printable(row), *(cells.get((row, column), empty) for column in columns)] for row in rows]
    return table_of([title, *map(printable, columns)], body)


def improvement_table(board: Leaderboard, group: str, decimals: int = 3) -> Table:
    """Return a table of P(a run of the agent in the row scores higher than a run of the agent in the column).

    Agents with too few seeds for an interval are left out.
    """
    rows = known_improvement(board, group)
    cells = {
        (row["agent"], row["other"]): with_interval(row, "probability", decimals) for row in rows.iter_rows(named=True)
    }
    agents = compared_agents(board, group)
    return _matrix("P(row scores higher than column)", agents, agents, cells)


def choice_table(board: Leaderboard, env: str) -> Table:
    """Return a table of how often each agent chose each target set or scope; it has no rows without choices."""
    rows = [
        [printable(row["agent"]), printable(row["choice"]), number(row["frequency"], row["frequency_half"])]
        for row in board.choices.filter(pl.col("env") == env).iter_rows(named=True)
    ]
    return table_of(["agent", "target set or scope", "share of rounds"], rows)


def coverage_table(board: Leaderboard) -> Table:
    """Return a table of the finished and failed runs of each pair; ``-`` if skipped, empty if never played."""
    counts = board.table.group_by("env", "agent").agg(
        *((pl.col("status") == status).sum().alias(status) for status in ("finished", "failed"))
    )
    cells = {
        (env, agent): Cell(str(finished), f"+ {failed} failed" if failed else "") if finished or failed else MISSING
        for env, agent, finished, failed in counts.iter_rows()
    }
    envs, agents = (board.table[name].unique().sort().to_list() for name in ("env", "agent"))
    return _matrix("environment", envs, agents, cells, empty="")


def gap_tables(board: Leaderboard) -> dict[str, Table]:
    """Return title -> table of GAP and PA-GAP, for environments of suites that are compared by them.

    If all environments of the leaderboard are, there are tables of its groups, too.
    """
    compared = [env for env in board.per_env["env"].unique() if is_compared_by("gap", env.rpartition(", T=")[0])]
    rows = board.per_env.filter(pl.col("env").is_in(compared))
    frames: dict[str, pl.DataFrame] = {}
    if rows.height and rows.height == board.per_env.height:
        for group in board.groups:
            frames[f"{group.capitalize()}, over environments"] = board.overall.filter(pl.col("group") == group)
    frames |= {str(env): rows.filter(pl.col("env") == env) for env in rows["env"].unique().sort()}
    tables = {}
    for (title, frame), (version, convention) in product(frames.items(), GAP_VERSIONS.items()):
        columns = {
            f"{version}{name}_{budget}": f"{label} at {budget}"
            for name, label in (("gap", "GAP"), ("pa_gap", "PA-GAP"))
            for budget in BUDGETS
            if frame[f"{version}{name}_{budget}"].count()
        }
        if columns:
            body = [[row["agent"], *(_metric(row, name) for name in columns)] for row in frame.iter_rows(named=True)]
            tables[f"{title}: {convention}"] = table_of(["agent", *columns.values()], body)
    return tables


def graph_loss_tables(board: Leaderboard) -> dict[str, Table]:
    """Return environment -> table of the scores that agents lose if they know less than the true graph, or a wrong one.

    The runs of an agent are compared, seed by seed, with its runs on the same task with the true graph, which have the
    same noise and randomness, and the same initial observations if the intervention sets are the same.
    """
    runs = {(*_graph_knowledge(run), run.agent, run.seed): run for run in board.runs}
    pairs: dict[tuple[str, str, str], list[tuple[Run, Run]]] = defaultdict(list)
    for (env, knowledge, agent, seed), run in runs.items():
        with_graph = runs.get((env, "", agent, seed))
        if knowledge and with_graph is not None:
            pairs[env, knowledge, agent].append((with_graph, run))
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for (env, knowledge, agent), pairs_of_agent in sorted(pairs.items()):
        with_graph_scores, scores = (final_numbers(runs) for runs in zip(*pairs_of_agent, strict=True))
        losses = [(with_graph_scores[name] - scores[name]).to_numpy() for name in LOST]
        cells = [number(values.mean(), float(half_width(values))) for values in losses]
        rows[env].append([agent, knowledge, str(len(pairs_of_agent)), *cells])
    return {
        env: table_of(["agent", "graph", "seeds", *LOST.values()], rows_of_env) for env, rows_of_env in rows.items()
    }


def _graph_knowledge(run: Run) -> tuple[str, str]:
    """Return the environment with its horizon, and the known graph: ``wrong (missing=1)``; empty for the true graph."""
    spec = Spec.from_label(run.env)
    env = f"{without_keywords(run.env, *GRAPH_KEYWORDS)}, T={run.horizon}"
    graph = spec.keywords.get("graph", "known")
    if graph == "known":
        return env, ""
    parameters = {name.removeprefix("graph_"): value for name, value in spec.parameters if name in GRAPH_KEYWORDS[1:]}
    keywords = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return env, f"{graph} ({keywords})" if keywords else str(graph)


def instance_tables(board: Leaderboard) -> dict[str, Table]:
    """Return environment -> table of the scores that agents lose on its instances, whose optimum is not published.

    See :mod:`cbo_gym.problems.variations.instance`. There is a row for each score of each agent with runs on instance
    0, the published system, and on other instances: both means, and their difference with Welch's 95 % interval.
    """
    runs: dict[tuple[str, str], tuple[list[Run], list[Run]]] = defaultdict(lambda: ([], []))
    for run in board.runs:
        if not run.secret:
            on_published, on_instances = runs[
                f"{without_keywords(run.env, INSTANCE_KEYWORD)}, T={run.horizon}", run.agent
            ]
            is_published = Spec.from_label(run.env).keywords.get(INSTANCE_KEYWORD, 0) == 0
            (on_published if is_published else on_instances).append(run)
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for (env, agent), runs_of_agent in sorted(runs.items()):
        if not all(runs_of_agent):
            continue
        published, instances = map(final_numbers, runs_of_agent)
        for name, title in INSTANCE_SCORES.items():
            scores = [numbers[name].cast(pl.Float64).to_numpy() for numbers in (published, instances)]
            means = [float(sample.mean()) for sample in scores]
            loss = number(means[0] - means[1], welch_half_width(scores))
            counts = f"{published.height}, {instances.height}"
            rows[env].append([agent, title, *(number(mean, None) for mean in means), loss, counts])
    header = ["agent", "score of", "as published", "on instances", "lost", "runs"]
    return {env: table_of(header, rows_of_env) for env, rows_of_env in rows.items()}


def paper_tables(
    board: Leaderboard, rankings: Mapping[str, Ranking | str], env_tables: Mapping[str, Mapping[str, Table]]
) -> dict[str, list[CaptionedTable]]:
    """Return name of a file -> tables for a paper, with captions; ``env_tables`` are those of the page."""
    overall, improvement = [], []
    for group, ranked in rankings.items():
        title = group.capitalize()
        caption = f"{title}: scores over environments with 95 % intervals."
        if isinstance(ranked, Ranking):
            caption += f" Agents that share a letter do not differ significantly: {TEST}; {ranked.test_in_short}."
        overall.append((caption, with_ranks(overall_table(board, group, PAPER_COLUMNS), ranked)))
        if known_improvement(board, group).height:
            caption = f"{title}: probability that a run of the agent in the row scores higher than one in the column."
            improvement.append((caption, improvement_table(board, group)))
    per_env = [
        (
            f"{mode.capitalize()}: score of the recommendation after the last round, mean over {board.seeds} seeds "
            "with half the width of its 95 % t-interval; in brackets the number of seeds where it is another.",
            score_table(board, mode),
        )
        for mode in board.groups
        if mode != ALL_MODES
    ]
    choices = [
        (f"{printable(env)}: share of rounds in which each was chosen.", tables["choices"])
        for env, tables in env_tables.items()
        if tables["choices"].rows
    ]
    return {"overall": overall, "per_env": per_env, "improvement": improvement, "choices": choices}
