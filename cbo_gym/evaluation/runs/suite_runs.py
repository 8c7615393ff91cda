"""Whether runs are those of a suite as it is now, for suites are edited while sweeps of them lie about."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.folder import intact_runs, run_files
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.suites import Suite


def differences(suite: Suite, runs: Sequence[Run]) -> Iterator[str]:
    """How runs differ from a suite: environments, rounds and seeds that they have beyond it, or lack."""
    labels = suite.labels()
    seeds: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for run in runs:
        if run.env not in labels:
            yield f"{described(run)}: the suite {suite.name} has no such environment"
        elif run.horizon != (rounds := suite.rounds(run.env)):
            yield f"{described(run)}: the suite {suite.name} has {rounds} rounds there"
        else:
            seeds[run.agent, run.env][run.seed] += 1
    for agent in sorted({run.agent for run in runs}):
        for env in labels:
            yield from _seeds(f"{agent} on {env}", seeds[agent, env], suite)


def warn_of_others(
    suite: Suite, folder: Path, known: Collection[Path], seeds: Iterable[int] | None, horizon: int | None
) -> None:
    """Say in a warning which runs of a folder are not of the suite as it is, for they are compared with the rest.

    Args:
        suite: that is played.
        folder: of the runs; there may be none yet.
        known: files of it that need no look.
        seeds: that are played besides the suite's.
        horizon: likewise.
    """
    labels, wanted = suite.labels(), {*suite.seed_numbers(), *(seeds or ())}
    paths = [path for path in run_files(folder) if path not in known] if folder.is_dir() else []
    others = Counter(
        env_label(run)
        for run in intact_runs(paths)
        if run.env not in labels or run.horizon not in (horizon, suite.rounds(run.env)) or run.seed not in wanted
    )
    if others:
        listed = ", ".join(f"{label} ({count})" for label, count in sorted(others.items()))
        warnings.warn(
            f"{others.total()} runs in {folder} are not of the suite {suite.name} as it is played now: {listed}. They "
            "stay, and a leaderboard of the folder has them too; move the folder away, or choose by --env",
            stacklevel=3,
        )


def described(run: Run) -> str:
    """A run for a message."""
    return f"{run.agent} on {env_label(run)}, seed {run.seed}"


def _seeds(where: str, counts: Counter[int], suite: Suite) -> Iterator[str]:
    """Those of the suite, each once."""
    wanted = suite.seed_numbers()
    if twice := sorted(seed for seed, count in counts.items() if count > 1):
        yield f"{where}: the seeds {_listed(twice)} are there more than once"
    if missing := [seed for seed in wanted if seed not in counts]:
        yield f"{where}: the suite {suite.name} has {suite.seeds} seeds; missing are {_listed(missing)}"
    if strange := sorted(set(counts) - set(wanted)):
        yield f"{where}: the suite {suite.name} has no seeds {_listed(strange)}"


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds[:10])) + (f" and {len(seeds) - 10} more" if len(seeds) > 10 else "")
