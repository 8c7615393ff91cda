"""Describe the runs behind a leaderboard: which are missing, and with which code and on which machines others ran."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

import polars as pl

from cbo_gym.errors import printable
from cbo_gym.evaluation.comparison.leaderboard import Leaderboard, compared_over_envs
from cbo_gym.evaluation.runs.counted import BLIND, env_label
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import parts_of

# Value of ``Run.recommend`` -> its description.
RECOMMENDATIONS = {"every": "every round", "powers": "powers of two", "end": "at the end"}


def completeness(board: Leaderboard) -> str:
    """Describe what a comparison lacks: runs that have not ended, and runs with other rounds; empty if nothing."""
    return " ".join(filter(None, [_unfinished_runs(board), _other_rounds(board)]))


def _other_rounds(board: Leaderboard) -> str:
    scored = board.per_env.filter(pl.col("score").is_not_null(), ~pl.col("env").str.ends_with(BLIND))
    others = sorted(set(scored["env"]) - set(compared_over_envs(scored)["env"]))
    if not others:
        return ""
    return (
        f"Scores over environments leave out {', '.join(others)}: runs with other numbers of rounds or batches are not "
        "averaged together, and more agents have the others."
    )


def _unfinished_runs(board: Leaderboard) -> str:
    tried = board.table.filter(pl.col("status") != "skipped")
    ended = tried.group_by("mode", "env", "agent").agg(pl.col("seed").n_unique())
    plays, envs = tried.select("mode", "agent").unique(), tried.select("mode", "env").unique()
    grid = plays.join(envs, on="mode")
    expected, count = grid.height * board.seeds, int(ended["seed"].sum())
    if count >= expected:
        return ""
    return (
        f"This comparison is not complete: {count} of {expected} runs have ended ({board.seeds} seeds of every agent "
        "on every environment of the modes that it plays). Numbers say how many seeds they rest on."
    )


def incomplete_rows(board: Leaderboard) -> list[tuple[str, str]]:
    """Return descriptions of runs without a score, each with the reason: failed, skipped and unverified runs."""
    rows = [(printable(f"failed: {run.agent} on {run.env}, seed {run.seed}"), run.error) for run in board.failed]
    reasons = {run.agent: run.error for run in reversed(board.skipped)}
    modes = {(run.agent, env_label(run)): run.mode for run in board.skipped}
    for agent in sorted(reasons):
        counts = Counter(mode for (skipped_agent, _), mode in modes.items() if skipped_agent == agent)
        counts_by_mode = ", ".join(f"{count} {mode}" for mode, count in sorted(counts.items()))
        rows.append((printable(f"skipped: {agent} on {counts_by_mode} environments"), reasons[agent]))
    for agent in sorted({run.agent for run in board.unverified}):
        unverified = [run for run in board.unverified if run.agent == agent]
        envs = {run.env for run in unverified}
        line = f"unverified, not ranked: {agent}, {len(unverified)} runs on {len(envs)} environments"
        rows.append((printable(line), "these runs have not been replayed by others"))
    return rows


def provenance(board: Leaderboard) -> str:
    """Describe the runs by number, seeds, versions, dates and machines, and the differences among them."""
    return " ".join(provenance_sentences(board))


def provenance_sentences(board: Leaderboard) -> list[str]:
    """Return the sentences of :func:`provenance`: one about all runs, then those about differences."""
    runs = board.table.filter(pl.col("status") == "finished")
    versions, dates, machines = (
        sorted({value for value in runs[name] if value}) for name in ("version", "date", "machine")
    )
    facts = [f"{runs.height} finished runs", f"seeds {_ranges(sorted(runs['seed'].unique()))}"]
    facts.append(f"cbo-gym {' and '.join(versions)}")
    if dates:
        days = [date.partition("T")[0] for date in (dates[0], dates[-1])]
        facts.append(" to ".join(dict.fromkeys(days)))
    sentences = ["; ".join([*facts, *machines]), *mixtures(board.runs)]
    if board.replaced:
        sentences.append(f"Left out: {board.replaced} runs that were played again later")
    return [printable(f"{sentence}.") for sentence in sentences]


def mixtures(runs: Collection[Run]) -> list[str]:
    """Describe the properties in which finished runs differ: ``Mixed numpy: 2.3.1 (8 runs), 2.4.0 (2 runs)``.

    The code of an agent is compared among its own runs, and the code of an environment among the runs on it. The
    column ``sources`` of the leaderboard has the code.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    codes: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for run in runs:
        properties = {
            "cbo-gym": run.version,
            **run.libraries,
            **{f"threads of {name}": str(number) for name, number in run.threads.items()},
            "machine": run.machine,
            "recommendations": RECOMMENDATIONS[run.recommend],
        }
        for name, value in properties.items():
            counts[name][value] += 1
        for (subject, name), stamp in parts_of(run).items():
            codes[f"code of {subject}s"][name].add(stamp)
    mixed = {
        name: [f"{value or '-'} ({number} runs)" for value, number in sorted(values.items())]
        for name, values in counts.items()
        if len(values) > 1
    }
    for subject, stamps in codes.items():
        mixed[subject] = [f"{name} ({len(code)} codes)" for name, code in sorted(stamps.items()) if len(code) > 1]
    return [f"Mixed {name}: {', '.join(values)}" for name, values in mixed.items() if values]


def _ranges(numbers: Iterable[int]) -> str:
    """Return ``0 to 4, 7`` for 0, 1, 2, 3, 4, 7."""
    runs: list[list[int]] = []
    for value in numbers:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
