"""Paired comparison of two agents: differences of their scores on the same seeds.

Runs of one environment, number of rounds and seed have the same noise and initial data, so that their difference is due
to the agents. Regrets on one environment differ from scores by a factor and the sign only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cbo_gym.agent_registry.labels import matches
from cbo_gym.errors import ArgumentError, name_hint
from cbo_gym.evaluation.comparison.leaderboard import ALL_MODES, RUNS_LISTED_BY, failures_as_random, final_numbers
from cbo_gym.evaluation.metrics.aggregate import half_width, welch_half_width, with_ends
from cbo_gym.evaluation.metrics.registry import METRICS
from cbo_gym.evaluation.runs.counted import newest, without_blind_runs
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.together import runs_of

#: Metrics that every run has and that are comparable among environments.
COMPARED = tuple(
    name for name, metric in METRICS.items() if metric.over_envs == "interval" and metric.column == "always"
)
TEST = "paired permutation test"
#: Number of random signs, if there are too many to try all.
DRAWS = 20_000
#: Largest number of pairs for which all signs are tried.
EXACT_PAIRS = 14
#: Largest number of draws in memory at a time.
CHUNK = 1000
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
    """Differences of one agent from another on the seeds that both have finished.

    Attributes:
        agent, other: labels; a positive difference favours ``agent``.
        per_env: a row for each of :data:`COMPARED` and each environment: ``metric``, ``mode``, ``env``, the number of
            common ``seeds``, the mean ``difference`` with its 95 % t-interval ``difference_low`` to
            ``difference_high`` (null with one seed), and the numbers of seeds that are ``wins``, ``ties`` and
            ``losses`` of ``agent``.
        overall: a row for each metric and each *group*: a feedback mode, or all if there are several. ``envs`` and
            ``pairs`` (of runs) are counts; ``difference`` is the mean over environments of the means over seeds, with
            a 95 % t-interval (null if some environment has one seed); ``wins``, ``ties`` and ``losses`` count
            environments by the sign of their mean. ``p_value`` is that of a paired permutation test, see
            :func:`sign_flip_p_value`, and ``least_p_value`` the smallest that so many pairs can give.
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
            known = row["difference_low"] is not None
            interval = f" [{row['difference_low']:.3f}, {row['difference_high']:.3f}]" if known else ""
            lines.append(
                f"{METRICS[row['metric']].title}, {row['group']}: {row['difference']:.3f}{interval}, "
                f"p = {row['p_value']:.2g} ({row['envs']} environments, {row['pairs']} pairs)"
            )
        return "\n".join(lines)


def compare(
    source: Path | str | Iterable[Run], agent: str, other: str, *, beside: Path | str | Iterable[Path | str] = ()
) -> Comparison:
    """Compare two agents over the seeds that both have finished, on each environment and over all.

    A seed that only one of them finished counts too: the failed run scores as random play.

    Unverified runs are left out, and blind ones unless all are blind; if several versions of the package played the
    same run, the newest counts.

    Args:
        source: runs, or a folder that a sweep wrote, or published results (a path, or a name of the package's).
        beside: further folders or published results, whose runs on the environments of ``source`` are compared too. A
            warning says where their numbers of rounds or their code differ from those of ``source``.
        agent: label, or a name or pattern that matches a single label.
        other: label, name or pattern, as ``agent``.

    Raises:
        ArgumentError: if a name matches no agent or several, or both match the same; if the agents share no seed.
    """
    counted = without_blind_runs(newest(run for run in runs_of(source, beside) if not run.unverified))
    labels = sorted({run.agent for run in counted})
    first, second = (_label(name, labels) for name in (agent, other))
    if first == second:
        raise ArgumentError(f"give two different agents; given {first} twice")
    runs = [run for run in counted if run.status != "skipped" and run.agent in (first, second)]
    finished = [run for run in runs if run.status == "finished"]
    cells: defaultdict[tuple[str, int, int], dict[str, Run]] = defaultdict(dict)
    for run in runs:
        cells[run.env, run.horizon, run.seed][run.agent] = run
    finishes = {(run.agent, run.env, run.horizon) for run in finished}
    pairs = [
        (cell[first], cell[second])
        for (env, horizon, _), cell in cells.items()
        if len(cell) == 2
        and all((agent, env, horizon) in finishes for agent in cell)
        and any(run.status == "finished" for run in cell.values())
    ]
    if not pairs:
        raise ArgumentError(
            f"{first} and {second} have finished no environment with the same seed and number of rounds; "
            f"{_describe_runs_of(finished, first)}; {_describe_runs_of(finished, second)}"
        )
    by_env = _differences(pairs)
    return Comparison(
        agent=first,
        other=second,
        per_env=pl.DataFrame(list(_per_env(by_env)), schema=PER_ENV_SCHEMA),
        overall=pl.DataFrame(list(_overall(by_env)), schema=OVERALL_SCHEMA),
        runs=tuple(run for pair in pairs for run in pair),
        unpaired=len(finished) - sum(run.status == "finished" for pair in pairs for run in pair),
    )


def _label(name: str, labels: list[str]) -> str:
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
    envs = sorted({f"{run.env}, T={run.horizon}" for run in runs_of_agent})
    seeds = ", ".join(map(str, sorted({run.seed for run in runs_of_agent})))
    return f"{agent} has {'; '.join(envs)} with seeds {seeds}" if runs_of_agent else f"{agent} has finished no run"


def _differences(pairs: Sequence[tuple[Run, Run]]) -> dict[tuple[str, str], pl.DataFrame]:
    """Return the differences of the metrics by mode and environment, a row per seed."""
    first, second = (failures_as_random(final_numbers(runs)) for runs in zip(*pairs, strict=True))
    rows = first.select("mode", "env", *(first[name] - second[name] for name in COMPARED))
    frames = rows.sort("mode", "env", maintain_order=True).partition_by("mode", "env", as_dict=True)
    return {(str(mode), str(env)): frame for (mode, env), frame in frames.items()}


def _per_env(by_env: Mapping[tuple[str, str], pl.DataFrame]) -> Iterator[dict[str, object]]:
    for metric, ((mode, env), rows) in product(COMPARED, by_env.items()):
        values = rows[metric].to_numpy()
        labels = {"metric": metric, "mode": mode, "env": env, "seeds": len(values)}
        yield labels | _with_interval(float(values.mean()), float(half_width(values))) | _signs(values)


def _overall(by_env: Mapping[tuple[str, str], pl.DataFrame]) -> Iterator[dict[str, object]]:
    modes = list(dict.fromkeys(mode for mode, _ in by_env))
    groups = [ALL_MODES, *modes] if len(modes) > 1 else modes
    for metric, group in product(COMPARED, groups):
        values = [rows[metric].to_numpy() for (mode, _), rows in by_env.items() if group in (ALL_MODES, mode)]
        yield {"metric": metric, "group": group, **over_envs(values)}


def over_envs(differences: list[np.ndarray]) -> dict[str, Any]:
    """Return the columns of ``Comparison.overall`` from ``envs`` on.

    Args:
        differences: an array per environment, shape ``(seeds,)``.
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
    """Return the two-sided p-value of the paired permutation test that two agents do not differ.

    If they do not, the runs of a pair can be exchanged, which changes the sign of their difference. The statistic is
    the mean over environments of the mean differences; the p-value is the share of signs for which its absolute value
    is at least as large. All 2^n signs of n pairs are tried; with more than 14 pairs, 20000 random ones and the
    observed ones (Phipson & Smyth 2010, Permutation p-values should never be zero).

    Args:
        differences: an array per environment, shape ``(seeds,)``.
    """
    shares = np.concatenate([values / (len(values) * len(differences)) for values in differences])
    min_sum = abs(shares.sum()) - ROUNDING
    if len(shares) <= EXACT_PAIRS:
        signs = 1 - 2 * ((np.arange(2 ** len(shares))[:, None] >> np.arange(len(shares))) & 1)
        return float((np.abs(signs @ shares) >= min_sum).mean())
    # scipy.stats.permutation_test draws the same signs in 2.5 times the time.
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(DRAWS // CHUNK):
        signs = 1 - 2 * rng.integers(0, 2, size=(CHUNK, len(shares)))
        reached += int((np.abs(signs @ shares) >= min_sum).sum())
    return (1 + reached) / (1 + DRAWS)


def least_p_value(pairs: int) -> float:
    """Return the smallest p-value that the test can give with this number of pairs."""
    return 2.0 ** (1 - pairs) if pairs <= EXACT_PAIRS else 1 / (1 + DRAWS)
