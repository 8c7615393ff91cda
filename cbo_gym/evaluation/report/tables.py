"""The leaderboard as tables of cells, which the terminal, HTML, Markdown and LaTeX only format."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from cbo_gym.arguments import require_word
from cbo_gym.errors import naming_the_extra, printable
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard, final_numbers
from cbo_gym.evaluation.compare.significance import Ranking
from cbo_gym.evaluation.metrics.aggregate import half_width, welch_half_width
from cbo_gym.evaluation.metrics.gap import BUDGETS, EXPECTED, SURVEY
from cbo_gym.evaluation.metrics.registry import METRICS
from cbo_gym.evaluation.runs.counted import env_label, without_keywords
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import parts_of
from cbo_gym.labels import Spec
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD
from cbo_gym.suites import is_compared_by

if TYPE_CHECKING:
    import pandas as pd

OVERALL = {
    "iqm": "interquartile mean",
    "score": "mean score",
    "average_score": "score of play",
    "probability": "P(first scores higher)",
    "seconds": "seconds a round",
    "run_seconds": "seconds a run",
}
#: those by which agents are compared, and what is the best of several
RANKED: dict[str, Callable[[Any], Any]] = {
    "iqm": max,
    **{name: metric.best for name, metric in METRICS.items() if metric.over_envs and metric.best},
}
#: what the titles of columns mean, where their words do not say it
HEADS = {
    "envs": "environments that the agent finished, of those of the mode",
    "interquartile mean": "mean of the middle half of the scores of the recommendation",
    "mean score": "mean of the scores of the recommendation",
    "score of play": "mean score of all rounds as they were played",
    "P(first scores higher)": "probability that a run of the agent in the first row scores higher",
    "seconds a round": "act, update and recommend together",
    "mean rank": "mean over environments; 1 is the best",
    "not told apart": "agents with a letter in common may be equally good",
}
MISSING = "-"
#: What stands beside every table of scores.
SCORE_NOTE = (
    "Score: 0 is the mean of a random action, 1 the optimum. It is of the action recommended after the last round, so "
    "that random play that recommends the best that it saw scores above 0 in most tasks; the score of play "
    "is of all rounds as they were played."
)
RECOMMENDATIONS = {"every": "every round", "powers": "powers of two", "end": "at the end"}
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
    "Score on the system as published minus the mean over its instances, on which nobody can know where the optimum "
    "lies; runs are not paired, intervals are Welch's."
)
INSTANCE_SCORES = {"average_score": "play", "score": "recommendation"}


class Cell(NamedTuple):
    """The content of one cell.

    Attributes:
        text: what counts.
        detail: the interval of it, or a remark; what is written in one line says it behind the text.
        value: the number that the text is made of; None where it is none.
        best: whether it is the best of those that it is compared with.
    """

    text: str
    detail: str = ""
    value: float | None = None
    best: bool = False

    def __str__(self) -> str:
        return f"{self.text} {self.detail}" if self.detail else self.text


class Table(NamedTuple):
    """Titles of columns, and rows of as many cells; the first cell of a row says whose it is."""

    header: list[str]
    rows: list[list[Cell]]

    @property
    def lines(self) -> list[list[str]]:
        """The rows, each cell in one text."""
        return [list(map(str, row)) for row in self.rows]

    def column(self, title: str) -> list[Cell]:
        """The cells of a column."""
        place = self.header.index(title)
        return [row[place] for row in self.rows]


CaptionedTable = tuple[str, Table]


def table_of(titles: Sequence[str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table of cells, and of texts that become cells."""
    return Table(list(titles), [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows])


def data_frames(board: Leaderboard) -> dict[str, pl.DataFrame]:
    """The leaderboard's data frames by the names of their files."""
    return {
        "overall": board.overall,
        "per_env": board.per_env,
        "profiles": board.profiles,
        "improvement": board.improvement,
        "choices": board.choices,
        "runs": board.table,
    }


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
    frames = data_frames(board)
    frames["table"] = frames.pop("runs")
    require_word("name", name, frames)
    with naming_the_extra("a data frame of pandas"):
        return frames[name].to_pandas()


def overall_table(board: Leaderboard, group: str, columns: Sequence[str] = tuple(OVERALL)) -> Table:
    """One group's agents; of scores ``0.612 [0.553, 0.681]``, with the ends of the 95 % interval.

    Best are, of the agents that have all environments of the group, the best in :data:`RANKED`.
    """
    agents = board.overall.filter(pl.col("group") == group)
    first = board.improvement.filter(pl.col("group") == group, pl.col("agent") == agents["agent"][0])
    against_first = first.select(pl.col("other").alias("agent"), pl.col("^probability.*$"))
    complete = agents.filter(pl.col("envs") == pl.col("of"))
    known = {name: complete[name].drop_nulls() for name in RANKED} if complete.height > 1 else {}
    best = {name: RANKED[name](values) for name, values in known.items() if len(values)}
    rows = [
        [
            printable(row["agent"]),
            f"{row['envs']} of {row['of']}",
            Cell(_seeds(board, row["fewest_seeds"], row["most_seeds"]), _failures(board, group, row["agent"])),
            *(
                _metric_cell(row, name)._replace(best=row["envs"] == row["of"] and best.get(name) == row[name])
                for name in columns
            ),
        ]
        for row in agents.join(against_first, on="agent", how="left", maintain_order="left").iter_rows(named=True)
    ]
    return table_of(["agent", "envs", "seeds", *(OVERALL[name] for name in columns)], rows)


def with_ranks(table: Table, found: Ranking | str) -> Table:
    """The table over environments with mean ranks beside it, where these were tested."""
    if isinstance(found, str):
        return table
    letters = {printable(agent): text for agent, text in found.letters.items()}
    ranks = {printable(agent): f"{rank:.2f}" for agent, rank in zip(found.agents, found.ranks, strict=True)}
    rows = [[*row, *(values.get(row[0].text, MISSING) for values in (ranks, letters))] for row in table.rows]
    return table_of([*table.header, "mean rank", "not told apart"], rows)


def _failures(board: Leaderboard, group: str, agent: str) -> str:
    """``(3 failed, scored as random play)``; empty if no seed failed."""
    of_agent = board.per_env.filter(pl.col("agent") == agent, pl.col("mode").eq(group) | (group == ALL_MODES))
    failed = of_agent.filter(pl.col("seeds") > 0)["failed"].sum()
    return f"({failed} failed, scored as random play)" if failed else ""


def _seeds(board: Leaderboard, fewest: int, most: int) -> str:
    """``5``; where a number rests on fewer than there are, ``2-4 of 5``."""
    shown = str(most) if fewest == most else f"{fewest}-{most}"
    return shown if fewest == board.seeds else f"{shown} of {board.seeds}"


def completeness(board: Leaderboard) -> str:
    """The unfinished part of the grid of agents and the environments that they can play; empty if there is none."""
    tried = board.table.filter(pl.col("status") != "skipped")
    ended = tried.group_by("mode", "env", "agent").agg(pl.col("seed").n_unique())
    plays, envs = tried.select("mode", "agent").unique(), tried.select("mode", "env").unique()
    grid = plays.join(envs, on="mode")
    expected, found = grid.height * board.seeds, int(ended["seed"].sum())
    if found >= expected:
        return ""
    return (
        f"This sweep is not complete: {found} of {expected} runs have ended ({board.seeds} seeds of every agent on "
        "every environment of the modes that it plays). Numbers say how many seeds they rest on."
    )


def _metric_cell(row: Mapping[str, Any], name: str) -> Cell:
    """A metric of a row of the leaderboard, with whichever interval the row has of it."""
    if f"{name}_half" in row:
        return number(row[name], row[f"{name}_half"])
    if f"{name}_low" in row:
        return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
    return Cell(f"{row[name]:.3g}", value=row[name])


def with_interval(value: float | None, low: float | None, high: float | None, decimals: int = 3) -> Cell:
    """``0.612 [0.553, 0.681]``; the value alone where the interval is not known, or has no width that is shown."""
    if value is None:
        return Cell(MISSING)
    text, *ends = (None if one is None else f"{one:.{decimals}f}" for one in (value, low, high))
    shown = None not in ends and {text} != set(ends)
    return Cell(str(text), f"[{ends[0]}, {ends[1]}]" if shown else "", value)


def env_table(board: Leaderboard, env: str) -> Table:
    """One environment's agents: means and half their 95 % intervals; failed runs are counted beside the seeds.

    What only some environments have comes last: rounds to a score, total costs, the share of feasible actions.
    """
    found = board.per_env.filter(pl.col("env") == env)
    titles = {
        name: metric.title
        for name, metric in METRICS.items()
        if metric.shown == "always"
        or (metric.shown == "where any" and found[f"{name}_seeds" if metric.censored else name].count())
    }
    rows = [
        [
            printable(row["agent"]),
            Cell(_seeds(board, row["seeds"], row["seeds"]), f"({row['failed']} failed)" if row["failed"] else ""),
            *(_metric(row, name) for name in titles),
        ]
        for row in found.iter_rows(named=True)
    ]
    return table_of(["agent", "seeds", *titles.values()], rows)


def _metric(row: dict[str, Any], name: str) -> Cell:
    if METRICS[name].censored and row[name] is None and row[f"{name}_seeds"] is not None:
        return Cell(f"{row[f'{name}_seeds']} of {row['seeds']} seeds")
    if name == "seconds" and row[name] is not None:  # that times vary says more of the machine than of the agent
        return Cell(f"{row[name]:.3g}", value=row[name])
    return _metric_cell(row, name)


def number(mean: float | None, half: float | None) -> Cell:
    """``12.3 ± 4.5``: both with the decimals that show two digits of the interval, which may be None or NaN."""
    if mean is None:
        return Cell(MISSING)
    if not half or math.isnan(half):
        return Cell(f"{mean:.4g}", value=mean)
    decimals = max(0, 1 - math.floor(math.log10(half)))
    if decimals > 4:
        return Cell(f"{mean:.3g}", f"± {half:.2g}", mean)
    return Cell(f"{mean:,.{decimals}f}", f"± {half:,.{decimals}f}", mean)


def score_table(board: Leaderboard, mode: str) -> Table:
    """Scores of the recommendation: one row per environment, one column per agent; the best of each row marked."""
    rows = board.per_env.filter(pl.col("mode") == mode)
    envs, agents = (rows[name].unique().sort().to_list() for name in ("env", "agent"))
    score, cells = pl.col("score"), {}
    best = (score == score.max().over("env")) & (pl.len().over("env") > 1)
    for row in rows.filter(score.is_not_null()).with_columns(best=best).iter_rows(named=True):
        cell, seeds = number(row["score"], row["score_half"]), row["seeds"]
        remark = f"({seeds})" if seeds != board.seeds else ""
        cells[row["env"], row["agent"]] = cell._replace(detail=f"{cell.detail} {remark}".strip(), best=row["best"])
    return _matrix("environment", envs, agents, cells)


def _matrix(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Cell | str],
    empty: str = MISSING,
) -> Table:
    """A table of cells by the names of rows and columns."""
    body = [[printable(row), *(cells.get((row, column), empty) for column in columns)] for row in rows]
    return table_of([title, *map(printable, columns)], body)


def improvement_table(board: Leaderboard, group: str, decimals: int = 3) -> Table:
    """P(a run of the agent in the row scores higher than one of the agent in the column), with its interval."""
    rows = board.improvement.filter(pl.col("group") == group)
    cells = {
        (row["agent"], row["other"]): with_interval(
            row["probability"], row["probability_low"], row["probability_high"], decimals
        )
        for row in rows.iter_rows(named=True)
    }
    agents = board.overall.filter(pl.col("group") == group)["agent"].to_list()
    return _matrix("P(row scores higher than column)", agents, agents, cells)


def choice_table(board: Leaderboard, env: str) -> Table:
    """How often each agent chose each target set or scope of one environment; without rows if there are none."""
    rows = [
        [printable(row["agent"]), printable(row["choice"]), number(row["frequency"], row["frequency_half"])]
        for row in board.choices.filter(pl.col("env") == env).iter_rows(named=True)
    ]
    return table_of(["agent", "target set or scope", "share of rounds"], rows)


def coverage_table(board: Leaderboard) -> Table:
    """The fate of every pair: the number of finished runs, and of failed ones; ``-`` if skipped, nothing if never
    tried.
    """
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
    """GAP and PA-GAP by title: each group over its environments, then each environment of a suite that has them.

    Environments over which a group is averaged are all of the board's, so its tables are of boards that hold nothing
    else.
    """
    compared = [env for env in board.per_env["env"].unique() if is_compared_by("gap", env.rpartition(", T=")[0])]
    rows = board.per_env.filter(pl.col("env").is_in(compared))
    parts: list[tuple[str, pl.DataFrame]] = []
    if rows.height and rows.height == board.per_env.height:
        parts += [
            (f"{group.capitalize()}, over environments", board.overall.filter(pl.col("group") == group))
            for group in board.groups
        ]
    parts += [(str(env), rows.filter(pl.col("env") == env)) for env in rows["env"].unique().sort()]
    tables = {}
    for (title, part), (version, named) in product(parts, GAP_VERSIONS.items()):
        columns = {
            f"{version}{name}_{budget}": f"{text} at {budget}"
            for name, text in (("gap", "GAP"), ("pa_gap", "PA-GAP"))
            for budget in BUDGETS
            if part[f"{version}{name}_{budget}"].count()
        }
        if columns:
            body = [
                [row["agent"], *(_metric_cell(row, name) for name in columns)] for row in part.iter_rows(named=True)
            ]
            tables[f"{title}: {named}"] = table_of(["agent", *columns.values()], body)
    return tables


def graph_loss_tables(board: Leaderboard) -> dict[str, Table]:
    """Environment -> the scores that agents lose where they are told less than the true graph, or something wrong.

    An agent's runs are compared with its own on the same task with the graph known, seed by seed: noise and the agent's
    own randomness are the same, and so are the initial observations as far as the sets that may be set are.
    """
    played = {(*_told_of_graph(run), run.agent, run.seed): run for run in board.runs}
    pairs: dict[tuple[str, str, str], list[tuple[Run, Run]]] = defaultdict(list)
    for (env, told, agent, seed), run in played.items():
        known = played.get((env, "", agent, seed))
        if told and known is not None:
            pairs[env, told, agent].append((known, run))
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for (env, told, agent), both in sorted(pairs.items()):
        known_scores, told_scores = (final_numbers(runs) for runs in zip(*both, strict=True))
        lost = [(known_scores[name] - told_scores[name]).to_numpy() for name in LOST]
        cells = [number(values.mean(), float(half_width(values))) for values in lost]
        rows[env].append([agent, told, str(len(both)), *cells])
    return {env: table_of(["agent", "told", "seeds", *LOST.values()], own) for env, own in rows.items()}


def _told_of_graph(run: Run) -> tuple[str, str]:
    """The environment with its horizon, and ``wrong (missing=1, seed=3)``; nothing if the graph is known."""
    spec = Spec.told(run.env)
    env = f"{without_keywords(run.env, *GRAPH_KEYWORDS)}, T={run.horizon}"
    graph = spec.keywords.get("graph", "known")
    if graph == "known":
        return env, ""
    more = [f"{name.removeprefix('graph_')}={value!r}" for name, value in spec.parameters if name in GRAPH_KEYWORDS[1:]]
    return env, f"{graph} ({', '.join(more)})" if more else str(graph)


def instance_tables(board: Leaderboard) -> dict[str, Table]:
    """Environment -> the scores that agents lose on instances of a system, on which no optimum can be known before.

    See :mod:`cbo_gym.problems.variations.instance`. There is a row for each agent with runs on instance 0 and on
    others, and for each score: its mean on either, and their difference with Welch's 95 % interval.
    """
    played: dict[tuple[str, str], tuple[list[Run], list[Run]]] = defaultdict(lambda: ([], []))
    for run in (run for run in board.runs if not run.secret):
        instance = Spec.told(run.env).keywords.get(INSTANCE_KEYWORD, 0) != 0
        played[f"{without_keywords(run.env, INSTANCE_KEYWORD)}, T={run.horizon}", run.agent][instance].append(run)
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for (env, agent), both in sorted(played.items()):
        if not all(both):
            continue
        published, instances = map(final_numbers, both)
        for name, what in INSTANCE_SCORES.items():
            scores = [numbers[name].cast(pl.Float64).to_numpy() for numbers in (published, instances)]
            means = [float(part.mean()) for part in scores]
            lost = number(means[0] - means[1], welch_half_width(scores))
            runs = f"{published.height}, {instances.height}"
            rows[env].append([agent, what, *(number(mean, None) for mean in means), lost, runs])
    header = ["agent", "score of", "as published", "on instances", "lost", "runs"]
    return {env: table_of(header, own) for env, own in rows.items()}


def incomplete_rows(board: Leaderboard) -> list[tuple[str, str]]:
    """Runs that gave no number, with the reason: every failed one, and per agent those skipped or unverified."""
    rows = [(printable(f"failed: {run.agent} on {run.env}, seed {run.seed}"), run.error) for run in board.failed]
    reasons = {run.agent: run.error for run in reversed(board.skipped)}
    modes = {(run.agent, env_label(run)): run.mode for run in board.skipped}
    for agent in sorted(reasons):
        counts = Counter(mode for (skipping, _), mode in modes.items() if skipping == agent)
        where = ", ".join(f"{count} {mode}" for mode, count in sorted(counts.items()))
        rows.append((printable(f"skipped: {agent} on {where} environments"), reasons[agent]))
    for agent in sorted({run.agent for run in board.unverified}):
        own = [run for run in board.unverified if run.agent == agent]
        what = f"unverified, not ranked: {agent}, {len(own)} runs on {len({run.env for run in own})} environments"
        rows.append((printable(what), "nobody else has played this agent again"))
    return rows


def provenance(board: Leaderboard) -> str:
    """The origin of the numbers: runs, seeds, versions, dates and machines, and what differs among the runs."""
    return " ".join(provenance_sentences(board))


def provenance_sentences(board: Leaderboard) -> list[str]:
    """The same; the first sentence is of all runs, the others of what they do not have in common."""
    runs = board.table.filter(pl.col("status") == "finished")
    versions, dates, machines = (
        sorted({value for value in runs[name] if value}) for name in ("version", "date", "machine")
    )
    days = [date.partition("T")[0] for date in dates]
    parts = [
        f"{runs.height} finished runs",
        f"seeds {_ranges(sorted(runs['seed'].unique()))}",
        f"cbo-gym {' and '.join(versions)}",
        *([" to ".join(dict.fromkeys([days[0], days[-1]]))] if days else []),
        *machines,
    ]
    sentences = ["; ".join(parts), *mixtures(board.runs)]
    if board.replaced:
        sentences.append(f"Left out: {board.replaced} runs that were played again later")
    return [printable(f"{sentence}.") for sentence in sentences]


def mixtures(runs: Collection[Run]) -> list[str]:
    """What finished runs do not have in common, with numbers of runs: ``Mixed numpy: 2.3.1 (8 runs), ...``.

    The code of an agent is compared among its runs, that of an environment among the runs on it.
    """
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        played_with = {
            "cbo-gym": run.version,
            **run.libraries,
            **{f"threads of {name}": str(number) for name, number in run.threads.items()},
            "machine": run.machine,
            "recommendations": RECOMMENDATIONS[run.recommend],
        }
        for name, what in played_with.items():
            counts.setdefault(name, Counter())[what] += 1
    mixed = [
        f"Mixed {name}: {', '.join(f'{what or MISSING} ({number} runs)' for what, number in sorted(found.items()))}"
        for name, found in counts.items()
        if len(found) > 1
    ]
    return [*mixed, *_mixed_codes(runs)]


def _mixed_codes(runs: Iterable[Run]) -> Iterator[str]:
    """Whose code is not one, ``Mixed code of agents: MCBO (2 codes)``; which it is, the column ``sources`` says."""
    codes: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        for (kind, name), stamp in parts_of(run).items():
            codes.setdefault(kind, {}).setdefault(name, set()).add(stamp)
    for kind, named in codes.items():
        if several := [f"{name} ({len(found)} codes)" for name, found in sorted(named.items()) if len(found) > 1]:
            yield f"Mixed code of {kind}s: {', '.join(several)}"


def _ranges(numbers: Iterable[int]) -> str:
    """``0 to 4, 7`` for 0, 1, 2, 3, 4, 7."""
    runs: list[list[int]] = []
    for value in numbers:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
