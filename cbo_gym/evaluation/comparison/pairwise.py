"""compare: paired comparison of two agents, by the differences of their scores on the same seeds.

Runs on an environment with the same number of rounds, size of batches and seed have the same noise and initial data, so
their difference is due to the agents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cbo_gym.agent_registry.labels import matches
from cbo_gym.errors import ArgumentError, ArgumentTypeError, name_hint, short_repr
from cbo_gym.evaluation.comparison.leaderboard import (
    ALL_MODES,
    RUNS_LISTED_BY,
    compared_over_envs,
    failures_as_random,
    final_numbers,
)
from cbo_gym.evaluation.metrics.aggregate import half_width, welch_half_width, with_ends
from cbo_gym.evaluation.metrics.registry import METRICS
from cbo_gym.evaluation.runs.counted import env_label, newest, without_blind_runs
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.together import Source, runs_of

#: Metrics that all runs have and that can be averaged over environments.
COMPARED = tuple(
    name for name, metric in METRICS.items() if metric.over_envs == "interval" and metric.column == "always"
)
TEST = "paired permutation test"
# Number of random signs, if there are too many to try all.
DRAWS = 20_000
# Largest number of pairs for which all signs are tried.
EXACT_PAIRS = 14
# Largest number of draws in memory at a time.
CHUNK = 1000
# Differences up to this size are due to rounding.
ROUNDING = 1e-12

DIFFERENCES = {
    **dict.fromkeys(["difference", "difference_low", "difference_high"], pl.Float64),
    **dict.fromkeys(["wins", "ties", "losses"], pl.Int64),
}
PER_ENV_SCHEMA = {**dict.fromkeys(["metric", "mode", "env"], pl.String), "seeds": pl.Int64, **DIFFERENCES}
OVERALL_SCHEMA = {
    **dict.fromkeys(["metric", "group"], pl.String),
    **dict.fromkeys(["envs", "pairs"], pl.Int64),
    **DIFFERENCES,
    **dict.fromkeys(["p_value", "least_p_value"], pl.Float64),
}


@dataclass(frozen=True, repr=False)
class Comparison:
    """Differences between two agents on the seeds that both have played.

    Attributes:
        agent, other: labels; a positive difference favours ``agent``.
        per_env: a row for each of :data:`COMPARED` and each environment: ``metric``, ``mode``, ``env``, the number of
            common ``seeds``, the mean ``difference`` with its 95 % t-interval ``difference_low`` to
            ``difference_high`` (null with one seed), and the numbers of seeds that are ``wins``, ``ties`` and
            ``losses`` of ``agent``.
        overall: a row for each metric and each *group*: a feedback mode, or all if there are several. ``envs`` and
            ``pairs`` are the numbers of environments and of pairs of runs; of an environment with several numbers of
            rounds only the runs with most rounds count. ``difference`` is the mean over environments of the means over
            seeds, with a 95 % t-interval (null if some environment has one seed); ``wins``, ``ties`` and ``losses``
            count environments by the sign of their mean. ``p_value`` is that of a paired permutation test, see
            :func:`sign_flip_p_value`, and ``least_p_value`` the smallest possible p-value with so many pairs.
        runs: the runs that were compared.
        unpaired: number of finished runs of the two agents without a partner.
    """

    agent: str
    other: str
    per_env: pl.DataFrame
    overall: pl.DataFrame
    runs: tuple[Run, ...]
    unpaired: int

    def __repr__(self) -> str:
        """Return a line for each metric and group."""
        lines = [f"{self.agent} minus {self.other}, 95 % intervals"]
        for row in self.overall.to_dicts():
            has_interval = row["difference_low"] is not None
            interval = f" [{row['difference_low']:.3f}, {row['difference_high']:.3f}]" if has_interval else ""
            lines.append(
                f"{METRICS[row['metric']].title}, {row['group']}: {row['difference']:.3f}{interval}, "
                f"p = {row['p_value']:.2g} ({row['envs']} environments, {row['pairs']} pairs)"
            )
        return "\n".join(lines)


def compare(source: Source, agent: str, other: str, *, beside: Path | str | Iterable[Path | str] = ()) -> Comparison:
    """Compare two agents on the seeds that both have played, on each environment and over all environments.

    If a run of a pair failed, it scores as random play. Unverified runs are left out, and so are blind runs, unless all
    are blind. If there are several runs of an agent on an environment with a seed, the newest is used.

    Args:
        source: runs, or a folder that a sweep wrote, or published results (a path, or a name of the package's).
        beside: other folders or published results, whose runs on the environments of ``source`` are compared too, as
            in :func:`~cbo_gym.evaluation.comparison.leaderboard.leaderboard`.
        agent: label of an agent, or a name or pattern that matches a single label.
        other: label, name or pattern of the other agent.

    Raises:
        ArgumentError: if a name matches no agent or several, or both match the same one, or the agents share no seed.
    """
    all_runs = without_blind_runs(newest(run for run in runs_of(source, beside) if not run.unverified))
    labels = sorted({run.agent for run in all_runs})
    first, second = (_label(name, labels) for name in (agent, other))
    if first == second:
        raise ArgumentError(f"give two different agents; given {first} twice")
    runs = [run for run in all_runs if run.status != "skipped" and run.agent in (first, second)]
    finished = [run for run in runs if run.status == "finished"]
    runs_by_seed: defaultdict[tuple[tuple[str, int, int], int], dict[str, Run]] = defaultdict(dict)
    for run in runs:
        runs_by_seed[(run.env, run.horizon, run.batch), run.seed][run.agent] = run
    # A failed run is paired only if the agent finished another seed of the environment.
    finished_envs = {(run.agent, (run.env, run.horizon, run.batch)) for run in finished}
    pairs = []
    for (env, _), by_agent in runs_by_seed.items():
        is_comparable = len(by_agent) == 2 and all((agent, env) in finished_envs for agent in by_agent)
        if is_comparable and any(run.status == "finished" for run in by_agent.values()):
            pairs.append((by_agent[first], by_agent[second]))
    if not pairs:
        raise ArgumentError(
            f"{first} and {second} have finished no environment with the same seed and numbers of rounds and batches; "
            f"{_describe_runs_of(finished, first)}; {_describe_runs_of(finished, second)}"
        )
    differences = _differences(pairs)
    return Comparison(
        agent=first,
        other=second,
        per_env=pl.DataFrame(list(_per_env(differences)), schema=PER_ENV_SCHEMA),
        # Runs of a seed with other numbers of rounds have the same noise, so they are not independent.
        overall=pl.DataFrame(list(_overall(compared_over_envs(differences))), schema=OVERALL_SCHEMA),
        runs=tuple(run for pair in pairs for run in pair),
        unpaired=len(finished) - sum(run.status == "finished" for pair in pairs for run in pair),
    )


def _label(name: str, labels: list[str]) -> str:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"give the label of an agent, one of {short_repr(labels)}; given {short_repr(name)}")
    if name in labels:
        return name
    matching = [label for label in labels if matches(label, [name])]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ArgumentError(f"several agents fit {name!r}: {', '.join(matching)}; give one of them")
    raise ArgumentError(f"no run is of {name!r}{name_hint(name, labels, RUNS_LISTED_BY)}")


def _describe_runs_of(finished: list[Run], agent: str) -> str:
    runs_of_agent = [run for run in finished if run.agent == agent]
    envs = sorted({env_label(run) for run in runs_of_agent})
    seeds = ", ".join(map(str, sorted({run.seed for run in runs_of_agent})))
    return f"{agent} has {'; '.join(envs)} with seeds {seeds}" if runs_of_agent else f"{agent} has finished no run"


def _differences(pairs: Sequence[tuple[Run, Run]]) -> pl.DataFrame:
    """Return the differences of the metrics :data:`COMPARED`, a row per pair, with ``mode``, ``env`` and ``agent``."""
    first, second = (failures_as_random(final_numbers(runs)) for runs in zip(*pairs, strict=True))
    rows = first.select("mode", "env", "agent", *(first[name] - second[name] for name in COMPARED))
    return rows.sort("mode", "env", maintain_order=True)


def _by_env(differences: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    """Return (mode, environment) -> differences."""
    return differences.partition_by("mode", "env", as_dict=True)


def _per_env(differences: pl.DataFrame) -> Iterator[dict[str, object]]:
    for metric, ((mode, env), rows) in product(COMPARED, _by_env(differences).items()):
        values = rows[metric].to_numpy()
        labels = {"metric": metric, "mode": mode, "env": env, "seeds": len(values)}
        yield labels | _with_interval(float(values.mean()), float(half_width(values))) | _signs(values)


def _overall(differences: pl.DataFrame) -> Iterator[dict[str, object]]:
    by_env = _by_env(differences)
    modes = list(dict.fromkeys(mode for mode, _ in by_env))
    groups = [ALL_MODES, *modes] if len(modes) > 1 else modes
    for metric, group in product(COMPARED, groups):
        values = [rows[metric].to_numpy() for (mode, _), rows in by_env.items() if group in (ALL_MODES, mode)]
        yield {"metric": metric, "group": group, **over_envs(values)}


def over_envs(differences: list[np.ndarray]) -> dict[str, Any]:
    """Return the columns of ``Comparison.overall`` from ``envs`` on.

    Args:
        differences: differences on each environment, shape ``(seeds,)``.
    """
    means = np.array([values.mean() for values in differences])
    half = welch_half_width(differences) / len(differences)
    pairs = sum(map(len, differences))
    return {
        "envs": len(differences),
        "pairs": pairs,
        **_with_interval(float(means.mean()), half),
        **_signs(means),
        "p_value": sign_flip_p_value(differences),
        "least_p_value": least_p_value(pairs),
    }


def _with_interval(mean: float, half: float) -> dict[str, float | None]:
    return with_ends("difference", mean, mean - half, mean + half, has_interval=not np.isnan(half))


def _signs(values: np.ndarray) -> dict[str, int]:
    signs = np.sign(np.where(np.abs(values) < ROUNDING, 0.0, values))
    return {"wins": int((signs > 0).sum()), "ties": int((signs == 0).sum()), "losses": int((signs < 0).sum())}


def sign_flip_p_value(differences: list[np.ndarray]) -> float:
    """Return the two-sided p-value of the paired permutation test of the hypothesis that two agents do not differ.

    Under the hypothesis, the runs of a pair can be exchanged, which changes the sign of their difference. The statistic
    is the mean over environments of the mean differences; the p-value is the fraction of signs for which its absolute
    value is at least as large as observed. All 2^n signs of n pairs are tried; with more than 14 pairs, 20000 random
    signs and the observed ones (Phipson & Smyth 2010, Permutation p-values should never be zero).

    Args:
        differences: differences on each environment, shape ``(seeds,)``.
    """
    # The statistic is the sum of these terms.
    terms = np.concatenate([values / (len(values) * len(differences)) for values in differences])
    count, observed = len(terms), abs(terms.sum()) - ROUNDING
    if count <= EXACT_PAIRS:
        # The bits of the numbers below 2^n are all combinations of signs.
        signs = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        return float((np.abs(signs @ terms) >= observed).mean())
    # scipy.stats.permutation_test draws the same signs in 2.5 times the time.
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(DRAWS // CHUNK):
        signs = 1 - 2 * rng.integers(0, 2, size=(CHUNK, count))
        reached += int((np.abs(signs @ terms) >= observed).sum())
    return (1 + reached) / (1 + DRAWS)


def least_p_value(pairs: int) -> float:
    """Return the smallest p-value that the test can give with this number of pairs."""
    return 2.0 ** (1 - pairs) if pairs <= EXACT_PAIRS else 1 / (1 + DRAWS)
