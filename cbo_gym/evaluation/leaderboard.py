"""Comparing agents: final regrets with intervals per environment, normalised scores across environments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from cbo_gym.evaluation.regret import normalised_score, selection_frequencies
from cbo_gym.evaluation.results import Run, load_runs

CONFIDENCE = 0.95
BOOTSTRAP_DRAWS = 2000

#: column -> its title, for every number of the per-environment table
METRICS = {
    "average_regret": "average regret",
    "simple_regret": "simple regret",
    "best_so_far_regret": "best-so-far regret",
    "cumulative_regret": "cumulative regret",
    "score": "score",
    "average_score": "average score",
    "seconds": "seconds a round",
}


@dataclass(frozen=True)
class Leaderboard:
    """Agents compared at the end of their runs.

    Attributes:
        per_env: a row for each environment and agent: ``seeds`` (finished runs), and for each of
            :data:`METRICS` its mean over seeds and ``<metric>_half``, half the width of its 95 % t-interval
            (null with one seed).
        overall: a row an agent: ``envs`` (environments with finished runs), the mean normalised score of the final
            recommendation over environments, ``low`` and ``high`` of its 95 % bootstrap interval (seeds resampled
            within each environment), and the same for the score averaged over all rounds.
        choices: a row for each environment, agent and target set or scope that the agent chose: the ``frequency`` of
            rounds in which it did so, its mean over seeds, and ``frequency_half`` as above.
        failed, skipped: the runs that give no number.
        runs: the finished runs.
    """

    per_env: pl.DataFrame
    overall: pl.DataFrame
    choices: pl.DataFrame
    failed: tuple[Run, ...]
    skipped: tuple[Run, ...]
    runs: tuple[Run, ...]


def leaderboard(source: Path | str | Iterable[Run]) -> Leaderboard:
    """Compare the runs of a folder, or runs given directly.

    Scores are normalised to 0 for random play and 1 for the optimum, see
    :func:`cbo_gym.evaluation.regret.normalised_score`.

    Raises:
        ValueError: if there is no finished run.
    """
    runs = list(load_runs(Path(source)) if isinstance(source, str | Path) else source)
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        raise ValueError(f"no finished run among the {len(runs)} in {source}")
    finals = pl.DataFrame([final_numbers(run) for run in finished])
    return Leaderboard(
        per_env=_per_env(finals),
        overall=_overall(finals),
        choices=_choices(finished),
        failed=tuple(run for run in runs if run.status == "failed"),
        skipped=tuple(run for run in runs if run.status == "skipped"),
        runs=tuple(finished),
    )


def env_label(run: Run) -> str:
    """The environment with its horizon: runs of different lengths are not compared."""
    return f"{run.env}, T={run.horizon}"


def final_numbers(run: Run) -> dict[str, Any]:
    """One finished run in one row: the metrics after its last round."""
    last = run.table.row(-1, named=True)
    # where the recommendation is for one context, what it lacks counts, not what the context is worth
    recommended = run.optimum - last["simple_regret"]
    scores = normalised_score(run.optimum, run.random_value, np.array([recommended, last["average_reward"]]))
    return {
        "env": env_label(run),
        "agent": run.agent,
        "seed": run.seed,
        **{name: last[name] for name in METRICS if name in last},
        "score": float(scores[0]),
        "average_score": float(scores[1]),
        "seconds": run.seconds_a_round,
    }


def half_width(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Half the width of the 95 % t-interval of the mean along ``axis``; NaN with fewer than two values."""
    count = values.shape[axis]
    if count < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    quantile = float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    return quantile * values.std(axis=axis, ddof=1) / np.sqrt(count)


def _per_env(finals: pl.DataFrame) -> pl.DataFrame:
    rows = []
    for (env, agent), group in finals.group_by(["env", "agent"], maintain_order=True):
        row: dict[str, Any] = {"env": env, "agent": agent, "seeds": group.height}
        for name in METRICS:
            values = group[name].to_numpy()
            half = float(half_width(values))
            row |= {name: float(values.mean()), f"{name}_half": None if np.isnan(half) else half}
        rows.append(row)
    order = pl.DataFrame(rows, infer_schema_length=None)
    return order.sort(["env", "average_regret"])


def _choices(runs: list[Run]) -> pl.DataFrame:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.choices:
            groups.setdefault((env_label(run), run.agent), []).append(run)
    rows: list[dict[str, Any]] = []
    for (env, agent), group in sorted(groups.items()):
        names = group[0].choices
        often = np.stack([selection_frequencies(run.table["choice"].to_numpy(), len(names)) for run in group])
        half = half_width(often)
        for name, mean, width in zip(names, often.mean(axis=0).tolist(), half.tolist(), strict=True):
            if mean:
                known = None if np.isnan(width) else width
                rows.append({"env": env, "agent": agent, "choice": name, "frequency": mean, "frequency_half": known})
    schema = {
        "env": pl.Utf8,
        "agent": pl.Utf8,
        "choice": pl.Utf8,
        "frequency": pl.Float64,
        "frequency_half": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema)


def _overall(finals: pl.DataFrame) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for (agent,), group in finals.group_by(["agent"], maintain_order=True):
        row: dict[str, Any] = {"agent": agent, "envs": group["env"].n_unique()}
        for name in ("score", "average_score"):
            per_env = [part[name].to_numpy() for _, part in group.group_by("env", maintain_order=True)]
            mean, low, high = _bootstrap_mean(per_env, rng)
            row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pl.DataFrame(rows).sort("score", descending=True)


def _bootstrap_mean(per_env: list[np.ndarray], rng: np.random.Generator) -> tuple[float, float, float]:
    """The mean over environments of the means over seeds, and its stratified bootstrap interval."""
    draws = [values[rng.integers(len(values), size=(BOOTSTRAP_DRAWS, len(values)))].mean(axis=1) for values in per_env]
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.mean(draws, axis=0), [tail, 100 - tail])
    return float(np.mean([values.mean() for values in per_env])), float(low), float(high)
