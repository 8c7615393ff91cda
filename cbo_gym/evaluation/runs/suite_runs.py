"""Compare runs with their suite, which may have been edited since they were played."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.folder import intact_runs, run_files
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.suites import Suite


def describe_differences(suite: Suite, runs: Sequence[Run]) -> Iterator[str]:
    """Yield messages about environments, numbers of rounds and seeds of the runs that are not those of the suite."""
    labels = suite.labels()
    seeds: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for run in runs:
        if run.env not in labels:
            yield f"{describe_run(run)}: the suite {suite.name} has no such environment"
        elif run.horizon != (rounds := suite.rounds(run.env)):
            yield f"{describe_run(run)}: the suite {suite.name} has {rounds} rounds there"
        else:
            seeds[run.agent, run.env][run.seed] += 1
    for agent in sorted({run.agent for run in runs}):
        for env in labels:
            yield from _describe_seeds(f"{agent} on {env}", seeds[agent, env], suite)


def warn_of_others(
    suite: Suite, folder: Path, known: Collection[Path], seeds: Iterable[int] | None, horizon: int | None
) -> None:
    """Warn of runs in a folder that do not belong to the suite, because leaderboards of the folder include them.

    Args:
        suite: Suite that is played.
        folder: Folder of the runs, which may not exist yet.
        known: Files in the folder that belong to the suite.
        seeds: Seeds that belong to the sweep, in addition to the suite's.
        horizon: Number of rounds that belongs to the sweep, in addition to the suite's; None for no other number.
    """
    labels, known_seeds = suite.labels(), {*suite.seed_numbers(), *(seeds or ())}
    paths = [path for path in run_files(folder) if path not in known] if folder.is_dir() else []
    others = Counter(
        env_label(run)
        for run in intact_runs(paths)
        if run.env not in labels or run.horizon not in (horizon, suite.rounds(run.env)) or run.seed not in known_seeds
    )
    if others:
        listed = ", ".join(f"{label} ({count})" for label, count in sorted(others.items()))
        warnings.warn(
            f"{others.total()} runs in {folder} are not of the suite {suite.name} as it is played now: {listed}. They "
            "stay, and a leaderboard of the folder has them too; move the folder away, or choose by --env",
            stacklevel=3,
        )


def describe_run(run: Run) -> str:
    """Describe a run in a message."""
    return f"{run.agent} on {env_label(run)}, seed {run.seed}"


def _describe_seeds(where: str, counts: Counter[int], suite: Suite) -> Iterator[str]:
    suite_seeds = suite.seed_numbers()
    if repeated := sorted(seed for seed, count in counts.items() if count > 1):
        yield f"{where}: the seeds {_join_seeds(repeated)} are there more than once"
    if missing := [seed for seed in suite_seeds if seed not in counts]:
        yield f"{where}: the suite {suite.name} has {suite.seeds} seeds; missing are {_join_seeds(missing)}"
    if unexpected := sorted(set(counts) - set(suite_seeds)):
        yield f"{where}: the suite {suite.name} has no seeds {_join_seeds(unexpected)}"


def _join_seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds[:10])) + (f" and {len(seeds) - 10} more" if len(seeds) > 10 else "")
