"""The leaderboard as rows of text: for the terminal, HTML and Markdown alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl

from cbo_gym.errors import printable
from cbo_gym.evaluation.leaderboard import METRICS, OF_SOME, Leaderboard, env_label
from cbo_gym.evaluation.significance import Ranking
from cbo_gym.files import csv_text

OVERALL = {
    "iqm": "interquartile mean",
    "score": "mean score",
    "average_score": "score of play",
    "probability": "P(first scores higher)",
    "seconds": "seconds a round",
    "run_seconds": "seconds a run",
}
MISSING = "-"
#: What stands beside every table of scores.
SCORE_NOTE = (
    "Score: 0 is the mean of a random action, 1 the optimum. It is of the action recommended after the last round, so "
    "that whoever plays at random and recommends the best that it saw scores above 0 in most tasks; the score of play "
    "is of all rounds as they were played."
)
RECOMMENDATIONS = {"every": "every round", "powers": "powers of two", "end": "at the end"}
SECONDS_NOTE = "Seconds a round: act, update and recommend together."


class TextTable(NamedTuple):
    """Titles of the columns, and rows of as many cells."""

    header: list[str]
    rows: list[list[str]]


def overall_table(board: Leaderboard, group: str, columns: Sequence[str] = tuple(OVERALL)) -> TextTable:
    """One group's agents; of scores ``0.612 [0.553, 0.681]``, with the ends of the 95 % interval."""
    agents = board.overall.filter(pl.col("group") == group)
    first = board.improvement.filter(pl.col("group") == group, pl.col("agent") == agents["agent"][0])
    against_first = first.select(pl.col("other").alias("agent"), pl.col("^probability.*$"))
    rows = [
        [
            printable(row["agent"]),
            f"{row['envs']} of {row['of']}",
            _seeds(board, row["fewest_seeds"], row["most_seeds"]),
            *(_overall_cell(row, name) for name in columns),
        ]
        for row in agents.join(against_first, on="agent", how="left", maintain_order="left").iter_rows(named=True)
    ]
    return TextTable(["agent", "envs", "seeds", *(OVERALL[name] for name in columns)], rows)


def _seeds(board: Leaderboard, fewest: int, most: int) -> str:
    """``5``; where a number rests on fewer than there are, ``2-4 of 5``."""
    shown = str(most) if fewest == most else f"{fewest}-{most}"
    return shown if fewest == board.seeds else f"{shown} of {board.seeds}"


def completeness(board: Leaderboard) -> str:
    """What of the grid has not ended: every agent on every environment of the modes that it plays; empty if all has."""
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


def _overall_cell(row: dict[str, Any], name: str) -> str:
    if f"{name}_low" not in row:
        return f"{row[name]:.3g}"
    return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """``0.612 [0.553, 0.681]``; the value alone where the interval is not known."""
    if value is None:
        return MISSING
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def env_table(board: Leaderboard, env: str, metrics: Sequence[str] = tuple(METRICS)) -> TextTable:
    """One environment's agents: means and half their 95 % intervals; failed runs are counted beside the seeds.

    What only some environments have comes last: total costs, the share of actions that met the constraints.
    """
    found = board.per_env.filter(pl.col("env") == env)
    titles = {name: METRICS[name] for name in metrics}
    titles |= {name: title for name, title in OF_SOME.items() if found[name].is_not_null().any()}
    rows = [
        [
            printable(row["agent"]),
            _seeds(board, row["seeds"], row["seeds"]) + (f" ({row['failed']} failed)" if row["failed"] else ""),
            *(_metric(row, name) for name in titles),
        ]
        for row in found.iter_rows(named=True)
    ]
    return TextTable(["agent", "seeds", *titles.values()], rows)


def _metric(row: dict[str, Any], name: str) -> str:
    if name == "seconds" and row[name] is not None:  # that times vary says more of the machine than of the agent
        return f"{row[name]:.3g}"
    return number(row[name], row[f"{name}_half"])


def number(mean: float | None, half: float | None) -> str:
    """``12.3 ± 4.5``: both with the decimals that show two digits of the interval."""
    if mean is None:
        return MISSING
    if not half:
        return f"{mean:.4g}"
    decimals = max(0, 1 - math.floor(math.log10(half)))
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}" if decimals <= 4 else f"{mean:.3g} ± {half:.2g}"


def improvement_table(board: Leaderboard, group: str) -> TextTable:
    """P(a run of the agent in the row scores higher than one of the agent in the column), with its interval."""
    rows = board.improvement.filter(pl.col("group") == group)
    cells = {
        (row["agent"], row["other"]): with_interval(row["probability"], row["probability_low"], row["probability_high"])
        for row in rows.iter_rows(named=True)
    }
    agents = board.overall.filter(pl.col("group") == group)["agent"].to_list()
    body = [[printable(agent), *(cells.get((agent, other), MISSING) for other in agents)] for agent in agents]
    return TextTable(["P(row scores higher than column)", *map(printable, agents)], body)


def ranking_table(ranking: Ranking) -> TextTable:
    """Mean ranks; agents that share no letter differ."""
    letters = ranking.letters
    rows = [
        [printable(agent), f"{rank:.2f}", letters[agent]]
        for agent, rank in zip(ranking.agents, ranking.ranks, strict=True)
    ]
    return TextTable(["agent", "mean rank", "not told apart"], rows)


def choice_table(board: Leaderboard, env: str) -> TextTable:
    """How often each agent chose each target set or scope of one environment; without rows if there are none."""
    rows = [
        [printable(row["agent"]), printable(row["choice"]), number(row["frequency"], row["frequency_half"])]
        for row in board.choices.filter(pl.col("env") == env).iter_rows(named=True)
    ]
    return TextTable(["agent", "target set or scope", "share of rounds"], rows)


def coverage_table(board: Leaderboard) -> TextTable:
    """What became of every pair: the number of finished runs, of failed ones, or skipped; ``-`` if never tried."""
    counts = board.table.group_by(["env", "agent"]).agg(
        *((pl.col("status") == status).sum().alias(status) for status in ("finished", "failed", "skipped"))
    )
    cells = {(row["env"], row["agent"]): _coverage(row) for row in counts.iter_rows(named=True)}
    envs, agents = (board.table[name].unique().sort().to_list() for name in ("env", "agent"))
    return TextTable(
        ["environment", *map(printable, agents)],
        [[printable(env), *(cells.get((env, agent), MISSING) for agent in agents)] for env in envs],
    )


def _coverage(counts: dict[str, int]) -> str:
    named = [f"{counts[status]} {status}" for status in ("finished", "failed") if counts[status]]
    return ", ".join(named) or "skipped"


def incomplete_rows(board: Leaderboard) -> list[tuple[str, str]]:
    """What gave no number, with the reason: every failed run, and once an agent what was skipped or is unverified."""
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
    """What the numbers come from: runs, seeds, versions, dates and machines, and what differs among the runs."""
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
    sentences = ["; ".join(parts), *mixtures(board)]
    if board.replaced:
        sentences.append(f"Left out: {board.replaced} runs that were played again later")
    return printable(". ".join(sentences) + ".")


def mixtures(board: Leaderboard) -> list[str]:
    """What the finished runs do not have in common, with numbers of runs: ``Mixed numpy: 2.3.1 (8 runs), ...``."""
    counts: dict[str, Counter[str]] = {}
    for run in board.runs:
        played_with = {
            "cbo-gym": run.version,
            **run.sources,
            **run.libraries,
            **{f"threads of {name}": str(number) for name, number in run.threads.items()},
            "machine": run.machine,
            "recommendations": RECOMMENDATIONS[run.recommend],
        }
        for name, what in played_with.items():
            counts.setdefault(name, Counter())[what] += 1
    return [
        f"Mixed {name}: {', '.join(f'{what or MISSING} ({number} runs)' for what, number in sorted(found.items()))}"
        for name, found in counts.items()
        if len(found) > 1
    ]


def _ranges(numbers: Iterable[int]) -> str:
    """``0 to 4, 7`` for 0, 1, 2, 3, 4, 7."""
    runs: list[list[int]] = []
    for value in numbers:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def csv_of(frame: pl.DataFrame) -> str:
    """A table as CSV; texts are in one line, and none is a formula to a spreadsheet."""
    return frame.with_columns(pl.col(pl.String).map_elements(csv_text, return_dtype=pl.String)).write_csv()
