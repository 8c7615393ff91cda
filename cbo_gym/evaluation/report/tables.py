"""Tables of a leaderboard, which the terminal, HTML, Markdown and LaTeX only format."""

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

OVERALL = {
    "iqm": "interquartile mean",
    "score": "mean score",
    "average_score": "score of play",
    "probability": "P(first scores higher)",
    "seconds": "seconds a round",
    "run_seconds": "seconds a run",
}
#: Columns by which agents are compared, and the function that picks the best value.
RANKED: dict[str, Callable[[Any], Any]] = {
    "iqm": max,
    **{name: metric.best for name, metric in METRICS.items() if metric.over_envs and metric.best},
}
#: Explanations of titles of columns.
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
#: Columns that fit a printed page.
PAPER_COLUMNS = ("iqm", "score", "average_score", "seconds")
MISSING = "-"
#: Note next to every table of scores.
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
GAP_VERSIONS = {EXPECTED: "expected", SURVEY: "the survey's convention"}
GRAPH_LOSS_NOTE = "Runs of an agent on the same task with its true graph, seed by seed; higher is a greater loss."
LOST = {"score": "of recommendation", "average_score": "of play"}
INSTANCES_NOTE = (
    "Score on the system as published minus the mean over its instances, whose optimum is not published; "
    "runs are not paired, intervals are Welch's."
)
INSTANCE_SCORES = {"average_score": "play", "score": "recommendation"}


class Cell(NamedTuple):
    """Content of one cell of a table.

    Attributes:
        formatted: the value as a string.
        detail: its interval or a remark, shown after the value.
        value: the number that is shown; None if the cell has no number.
        best: whether it is the best of the cells that it is compared with.
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


CaptionedTable = tuple[str, Table]


def table_of(titles: Sequence[str], rows: Iterable[Iterable[Any]]) -> Table:
    """Make a table of cells, and of strings that become cells."""
    return Table(list(titles), [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows])


def overall_table(board: Leaderboard, group: str, columns: Sequence[str] = tuple(OVERALL)) -> Table:
    """List a group's agents, with scores as ``0.612 [0.553, 0.681]``, the ends of the 95 % interval in brackets.

    The best value of each column of :data:`RANKED` is marked, among agents with all environments of the group and
    enough seeds on each.
    """
    agents = board.overall.filter(pl.col("group") == group)
    first = known_improvement(board, group).filter(pl.col("agent") == agents["agent"][0])
    against_first = first.select(pl.col("other").alias("agent"), pl.col("^probability.*$"))
    complete = agents.filter(pl.col("envs") == pl.col("of"), ENOUGH_SEEDS)
    ranked = set(complete["agent"])
    known = {name: complete[name].drop_nulls() for name in RANKED} if complete.height > 1 else {}
    best = {name: RANKED[name](values) for name, values in known.items() if len(values)}
    rows = [
        [
            printable(row["agent"]),
            f"{row['envs']} of {row['of']}",
            Cell(_seeds(board, row["fewest_seeds"], row["most_seeds"]), _failures(board, group, row["agent"])),
            *(
                _metric(row, name)._replace(best=row["agent"] in ranked and best.get(name) == row[name])
                for name in columns
            ),
        ]
        for row in agents.join(against_first, on="agent", how="left", maintain_order="left").iter_rows(named=True)
    ]
    return table_of(["agent", "envs", "seeds", *(OVERALL[name] for name in columns)], rows)


def with_ranks(table: Table, ranking: Ranking | str) -> Table:
    """Add mean ranks and the letters of the test to a table over environments, if there are enough agents to test."""
    if isinstance(ranking, str):
        return table
    letters = {printable(agent): string for agent, string in ranking.letters.items()}
    ranks = {printable(agent): f"{rank:.2f}" for agent, rank in zip(ranking.agents, ranking.ranks, strict=True)}
    rows = [[*row, *(values.get(row[0].formatted, MISSING) for values in (ranks, letters))] for row in table.rows]
    return table_of([*table.header, "mean rank", "not distinguished"], rows)


def _failures(board: Leaderboard, group: str, agent: str) -> str:
    """Return ``(3 failed, scored as random play)``; empty if no seed failed."""
    of_agent = compared_over_envs(board.per_env).filter(
        pl.col("agent") == agent, pl.col("mode").eq(group) | (group == ALL_MODES)
    )
    failed = of_agent.filter(pl.col("seeds") > 0)["failed"].sum()
    return f"({failed} failed, scored as random play)" if failed else ""


def _seeds(board: Leaderboard, min_seeds: int, max_seeds: int) -> str:
    """Return ``5``, or ``2-4 of 5`` if some agents or environments have fewer seeds than others."""
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
    """Format a column of a row: ``0.612 [0.553, 0.681]``; without an unknown interval, or one without width."""
    value = row[name]
    if value is None:
        return Cell(MISSING)
    formatted = f"{value:.{decimals}f}"
    ends = [f"{end:.{decimals}f}" for end in (row[f"{name}_low"], row[f"{name}_high"]) if end is not None]
    return Cell(formatted, f"[{', '.join(ends)}]" if len(ends) == 2 and {formatted} != set(ends) else "", value)


def env_table(board: Leaderboard, env: str) -> Table:
    """List an environment's agents: means with half their 95 % intervals, and seeds with the failed runs.

    Columns that only some environments have come last: rounds to a score, total costs, the share of feasible actions.
    """
    agents = board.per_env.filter(pl.col("env") == env)
    titles = {
        name: metric.title
        for name, metric in METRICS.items()
        if metric.column == "always"
        or (metric.column == "where any" and agents[f"{name}_seeds" if metric.censored else name].count())
    }
    rows = [
        [
            printable(row["agent"]),
            Cell(_seeds(board, row["seeds"], row["seeds"]), f"({row['failed']} failed)" if row["failed"] else ""),
            *(_metric(row, name) for name in titles),
        ]
        for row in agents.iter_rows(named=True)
    ]
    return table_of(["agent", "seeds", *titles.values()], rows)


def number(mean: float | None, half: float | None) -> Cell:
    """Return ``12.3 ± 4.5``, both with the decimals that show two digits of the interval, which may be None or NaN."""
    if mean is None:
        return Cell(MISSING)
    if not half or math.isnan(half):
        return Cell(f"{mean:.4g}", value=mean)
    decimals = max(0, 1 - math.floor(math.log10(half)))
    if decimals > 4:
        return Cell(f"{mean:.3g}", f"± {half:.2g}", mean)
    return Cell(f"{mean:,.{decimals}f}", f"± {half:,.{decimals}f}", mean)


def score_table(board: Leaderboard, mode: str) -> Table:
    """List scores of the recommendation, a row per environment and a column per agent, the best of a row marked."""
    rows = board.per_env.filter(pl.col("mode") == mode)
    envs, agents = (rows[name].unique().sort().to_list() for name in ("env", "agent"))
    score, cells = pl.col("score"), {}
    known, ranked = rows.filter(score.is_not_null()), pl.col("seeds") >= MIN_SEEDS
    best = ranked & (score == score.filter(ranked).max().over("env")) & (ranked.sum().over("env") > 1)
    for row in known.with_columns(best=best).iter_rows(named=True):
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
    """Make a table of cells, by the names of their rows and columns."""
    body = [[printable(row), *(cells.get((row, column), empty) for column in columns)] for row in rows]
    return table_of([title, *map(printable, columns)], body)


def improvement_table(board: Leaderboard, group: str, decimals: int = 3) -> Table:
    """List P(a run of the agent in the row scores higher than one of the agent in the column), with its interval.

    Agents with too few seeds for an interval are left out.
    """
    rows = known_improvement(board, group)
    cells = {
        (row["agent"], row["other"]): with_interval(row, "probability", decimals) for row in rows.iter_rows(named=True)
    }
    ranked = board.overall.filter(pl.col("group") == group)["agent"]
    agents = ranked.filter(ranked.is_in(rows["agent"].to_list())).to_list()
    return _matrix("P(row scores higher than column)", agents, agents, cells)


def choice_table(board: Leaderboard, env: str) -> Table:
    """List how often each agent chose each target set or scope of an environment; no rows without such choices."""
    rows = [
        [printable(row["agent"]), printable(row["choice"]), number(row["frequency"], row["frequency_half"])]
        for row in board.choices.filter(pl.col("env") == env).iter_rows(named=True)
    ]
    return table_of(["agent", "target set or scope", "share of rounds"], rows)


def coverage_table(board: Leaderboard) -> Table:
    """Count finished and failed runs of every pair; ``-`` if skipped, empty if never tried."""
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
    """Return tables of GAP and PA-GAP by title: for each group, then for each environment of a suite compared by them.

    There are tables of groups only if all environments of the leaderboard are compared by GAP.
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
    """Return for each environment the scores that agents lose if they know less than the true graph, or a wrong one.

    An agent's runs are compared with its own on the same task with the graph known, seed by seed. Noise and the agent's
    own randomness are the same, and so are the initial observations as far as the intervention sets are.
    """
    played = {(*_graph_knowledge(run), run.agent, run.seed): run for run in board.runs}
    pairs: dict[tuple[str, str, str], list[tuple[Run, Run]]] = defaultdict(list)
    for (env, knowledge, agent, seed), run in played.items():
        with_graph = played.get((env, "", agent, seed))
        if knowledge and with_graph is not None:
            pairs[env, knowledge, agent].append((with_graph, run))
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for (env, knowledge, agent), both in sorted(pairs.items()):
        with_graph_scores, scores = (final_numbers(runs) for runs in zip(*both, strict=True))
        lost = [(with_graph_scores[name] - scores[name]).to_numpy() for name in LOST]
        cells = [number(values.mean(), float(half_width(values))) for values in lost]
        rows[env].append([agent, knowledge, str(len(both)), *cells])
    return {
        env: table_of(["agent", "graph", "seeds", *LOST.values()], rows_of_env) for env, rows_of_env in rows.items()
    }


def _graph_knowledge(run: Run) -> tuple[str, str]:
    """Return the environment with its horizon, and ``wrong (missing=1, seed=3)``; empty if the graph is known."""
    spec = Spec.from_label(run.env)
    env = f"{without_keywords(run.env, *GRAPH_KEYWORDS)}, T={run.horizon}"
    graph = spec.keywords.get("graph", "known")
    if graph == "known":
        return env, ""
    parameters = {name.removeprefix("graph_"): value for name, value in spec.parameters if name in GRAPH_KEYWORDS[1:]}
    keywords = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return env, f"{graph} ({keywords})" if keywords else str(graph)


def instance_tables(board: Leaderboard) -> dict[str, Table]:
    """Return for each environment the scores that agents lose on its instances, whose optimum is not published.

    See :mod:`cbo_gym.problems.variations.instance`. There is a row for each score of each agent with runs on instance 0
    and on others: the mean on either, and their difference with Welch's 95 % interval.
    """
    played: dict[tuple[str, str], tuple[list[Run], list[Run]]] = defaultdict(lambda: ([], []))
    for run in board.runs:
        if run.secret:
            continue
        instance = Spec.from_label(run.env).keywords.get(INSTANCE_KEYWORD, 0) != 0
        played[f"{without_keywords(run.env, INSTANCE_KEYWORD)}, T={run.horizon}", run.agent][instance].append(run)
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for (env, agent), both in sorted(played.items()):
        if not all(both):
            continue
        published, instances = map(final_numbers, both)
        for name, title in INSTANCE_SCORES.items():
            scores = [numbers[name].cast(pl.Float64).to_numpy() for numbers in (published, instances)]
            means = [float(sample.mean()) for sample in scores]
            lost = number(means[0] - means[1], welch_half_width(scores))
            runs = f"{published.height}, {instances.height}"
            rows[env].append([agent, title, *(number(mean, None) for mean in means), lost, runs])
    header = ["agent", "score of", "as published", "on instances", "lost", "runs"]
    return {env: table_of(header, rows_of_env) for env, rows_of_env in rows.items()}


def paper_tables(
    board: Leaderboard, rankings: Mapping[str, Ranking | str], of_envs: Mapping[str, Mapping[str, Table]]
) -> dict[str, list[CaptionedTable]]:
    """Return captions and tables for a paper, by name of file; ``of_envs`` has the page's tables of environments."""
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
        for env, tables in of_envs.items()
        if tables["choices"].rows
    ]
    return {"overall": overall, "per_env": per_env, "improvement": improvement, "choices": choices}
