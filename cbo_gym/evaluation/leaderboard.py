"""Comparing agents: final regrets with intervals per environment, normalised scores across environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from packaging.version import Version
from scipy.special import stdtrit

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import aggregate
from cbo_gym.evaluation.folder import load_runs
from cbo_gym.evaluation.gap import GAPS, gaps
from cbo_gym.evaluation.regret import TIE_DECIMALS, normalised_score, selection_frequencies
from cbo_gym.evaluation.results import SECONDS, Run, kind_of, last_line, release, stacked
from cbo_gym.labels import Spec, matches
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

BOOTSTRAP_DRAWS = 2000
BATCH = 1000  # runs of a folder whose tables are in memory at a time
CELLS = 200_000  # numbers of a column that are in memory at a time
THRESHOLDS = np.arange(101) / 100  # of performance profiles: from random play to the optimum
ALL_MODES = "all modes"
IMPROVEMENT_SCHEMA = {
    **dict.fromkeys(["group", "agent", "other"], pl.String),
    "envs": pl.Int64,
    **dict.fromkeys(["probability", "probability_low", "probability_high"], pl.Float64),
}

#: column -> its title, for every number of the per-environment table
METRICS = {
    "average_regret": "average regret",
    "simple_regret": "simple regret",
    "best_so_far_regret": "best-so-far regret",
    "cumulative_regret": "cumulative regret",
    "score": "score of recommendation",
    "average_score": "score of play",
    "seconds": "seconds a round",
}

#: the same, of what not every environment has
OF_SOME = {"total_cost": "total cost", "feasible_share": "feasible actions"}
NUMBERS = (*METRICS, *OF_SOME, *GAPS)


@dataclass(frozen=True)
class Leaderboard:
    """Agents compared at the end of their runs.

    A *group* is a feedback mode, or :data:`ALL_MODES` where there are several: agents that play all of them. In
    columns ``<name>_low`` and ``<name>_high`` are the ends of a 95 % bootstrap interval (seeds resampled within each
    environment), null if some environment has a single run.

    Attributes:
        per_env: a row for each environment and agent: ``mode``, ``env``, ``agent``, ``seeds`` (finished runs),
            ``failed`` (runs), and for each of :data:`METRICS` its mean over seeds and ``<metric>_half``, half the
            width of its 95 % t-interval (null with one seed); the same for the columns :data:`OF_SOME`, which are null
            where nothing is paid or constrained, and :data:`GAPS`, which are null after fewer rounds than they name;
            ``gap_over_time`` outside of dynamic mode, the others in it.
        overall: a row for each group and agent: ``envs`` with finished runs, ``of`` how many in the group, ``runs``,
            and the ``fewest_seeds`` and ``most_seeds`` that finished on one of these environments; of the normalised
            score of the final recommendation the interquartile mean ``iqm`` and the mean ``score``, of the score
            averaged over all rounds the mean ``average_score``, each with its interval; ``seconds`` a round and
            ``run_seconds`` a run; the mean of each of :data:`GAPS` with its interval, null where a run lacks it.
            Agents with all environments of the group come first, then by ``iqm``.
        profiles: performance profiles: ``group``, ``agent``, ``threshold``, the ``fraction`` of runs with a score
            above it, and its interval.
        improvement: for each ordered pair of a group the ``probability`` that a run of ``agent`` scores higher than
            one of ``other``, over the number ``envs`` of environments that both have finished, and its interval.
        choices: a row for each environment, agent and target set or scope that the agent chose: the ``frequency`` of
            rounds in which it did so, its mean over seeds, and ``frequency_half`` as above.
        table: a row a run, also for those that failed or were skipped: ``status``, ``mode``, ``env``, ``agent``,
            ``seed``, ``version``, ``date``, ``machine``, ``sources``, ``libraries``, ``recommend``, :data:`METRICS`,
            :data:`OF_SOME`, ``run_seconds``, mean seconds a round of ``act``, ``update`` and ``recommend`` apart,
            ``error``.
        runs, failed, skipped: the runs by status.
        replaced: number of runs left out because another one of the same counts, see :func:`newest`.
        unverified: runs that are somebody's word alone; they are in nothing of the above.
    """

    per_env: pl.DataFrame
    overall: pl.DataFrame
    profiles: pl.DataFrame
    improvement: pl.DataFrame
    choices: pl.DataFrame
    table: pl.DataFrame
    runs: tuple[Run, ...]
    failed: tuple[Run, ...]
    skipped: tuple[Run, ...]
    replaced: int
    unverified: tuple[Run, ...] = ()

    @property
    def groups(self) -> list[str]:
        """All modes first, then the modes."""
        return self.overall["group"].unique(maintain_order=True).to_list()

    @property
    def seeds(self) -> int:
        """How many seeds there are; a pair that has fewer was not finished, failed, or was asked for fewer."""
        return self.table.filter(pl.col("status") != "skipped")["seed"].n_unique()


def leaderboard(
    source: Path | str | Iterable[Run],
    *,
    modes: Sequence[str] = (),
    envs: Sequence[str] = (),
    agents: Sequence[str] = (),
) -> Leaderboard:
    """Compare the runs of a folder, or runs given directly.

    Scores are normalised to 0 for random play and 1 for the optimum, see
    :func:`cbo_gym.evaluation.regret.normalised_score`. Where several versions of the package played the same, the
    newest counts. Runs that are unverified are never ranked.

    Args:
        source: a folder that a sweep wrote, or runs.
        modes: only these feedback modes; all if empty.
        envs: only environments that match one of these, see :func:`cbo_gym.specs.matches`.
        agents: only agents that do.

    Raises:
        ArgumentError: if no run, or no finished one, is left.
    """
    found: list[Run] = []
    parts: list[tuple[Sequence[Run], pl.DataFrame]] = []
    for read in _batches(load_runs(Path(source)) if isinstance(source, str | Path) else source):
        own = [
            run
            for run in read
            if (not modes or run.mode in modes)
            and (not envs or matches(run.env, envs))
            and (not agents or matches(run.agent, agents))
        ]
        found += read
        parts.append((own, _numbers(own)))
        if not isinstance(source, Sequence) or isinstance(source, str):  # whoever gives a list has their tables
            for run in read:
                release(run)
    chosen = [run for own, _ in parts for run in own]
    if not chosen and found:
        raise ArgumentError(
            f"none of the {len(found)} runs matches; there are the modes {_listed(run.mode for run in found)}, "
            f"the environments {_listed(run.env for run in found)} and the agents {_listed(run.agent for run in found)}"
        )
    counted = [run for run in chosen if not run.unverified]
    if not counted and chosen:
        raise ArgumentError(
            f"all {len(chosen)} runs are unverified, and such runs are not ranked; cbo-gym check-submission judges them"
        )
    runs = newest(counted)
    if not any(run.status == "finished" for run in runs):
        raise ArgumentError(_why_nothing(source, runs))
    require_scales(runs)
    places = {id(run): place for place, run in enumerate(chosen)}
    numbers = pl.concat([table for _, table in parts], how="vertical_relaxed")
    table = _without_types_of_nothing(numbers[[places[id(run)] for run in runs]])
    finished = table.filter(pl.col("status") == "finished")
    compared = [_compare(group, part) for group, part in _groups(finished)]
    overall, profiles, improvement = (pl.concat(parts, how="vertical_relaxed") for parts in zip(*compared, strict=True))
    return Leaderboard(
        per_env=_per_env(table),
        overall=overall,
        profiles=profiles,
        improvement=improvement,
        choices=_choices([run for run in runs if run.status == "finished"]),
        table=table,
        runs=tuple(run for run in runs if run.status == "finished"),
        failed=tuple(run for run in runs if run.status == "failed"),
        skipped=tuple(run for run in runs if run.status == "skipped"),
        replaced=len(counted) - len(runs),
        unverified=tuple(run for run in chosen if run.unverified),
    )


def _why_nothing(source: Path | str | Iterable[Run], runs: Sequence[Run]) -> str:
    """What is there instead of a finished run, and what to do."""
    if not runs:
        where = f" in {source}" if isinstance(source, str | Path) else ""
        return (
            f"there is no finished run{where}, nor any other; play some: cbo-gym sweep FOLDER -a AGENT -e ENVIRONMENT"
        )
    reasons = Counter(f"{run.status}: {last_line(run.error)}" for run in runs)
    (reason, count), *_ = reasons.most_common(1)
    return f"there is no finished run among {len(runs)}; {count} of them {reason}"


def newest(runs: Iterable[Run]) -> list[Run]:
    """One run for each environment, horizon, agent and seed, sorted by these.

    Of several one counts that is not unverified; of such the newest version, of this a run that finished rather than
    one that did not, and of such the latest.
    """
    by_age = sorted(
        runs, key=lambda run: (not run.unverified, Version(run.version), run.status == "finished", run.date)
    )
    kept = {(run.env, run.horizon, run.agent, run.seed): run for run in by_age}
    return [kept[what] for what in sorted(kept)]


def env_label(run: Run) -> str:
    """The environment with its horizon, for runs of different lengths are not compared; blind ones are apart.

    Of blind runs the instance is left out: each has its own.
    """
    if not run.secret:
        return f"{run.env}, T={run.horizon}"
    spec = Spec.told(run.env)
    others = tuple(pair for pair in spec.parameters if pair[0] != INSTANCE_KEYWORD)
    return f"{Spec(spec.name, others)}, T={run.horizon}, blind"


def final_numbers(runs: Sequence[Run]) -> pl.DataFrame:
    """A row a run: what it was, and the metrics after its last round, null unless it finished.

    Raises:
        ArgumentError: if of a finished run a random action is as good as the optimum.
    """
    require_scales(runs)
    return _numbers(runs)


def require_scales(runs: Iterable[Run]) -> None:
    """Scores of all finished runs mean something.

    Raises:
        ArgumentError: if of one a random action is as good as the optimum.
    """
    ends = np.array([(run.optimum, run.random_value) for run in runs if run.status == "finished"]).reshape(-1, 2)
    normalised_score(ends[:, 0], ends[:, 1], ends[:, 0])


def _numbers(runs: Sequence[Run]) -> pl.DataFrame:
    """As :func:`final_numbers`; without a score where it would mean nothing."""
    texts = {
        "status": [run.status for run in runs],
        "mode": [run.mode for run in runs],
        "env": [env_label(run) for run in runs],
        "agent": [run.agent for run in runs],
        "seed": [run.seed for run in runs],
        "version": [run.version for run in runs],
        "date": [run.date for run in runs],
        "machine": [run.machine for run in runs],
        "sources": [_pairs(run.sources) for run in runs],
        "libraries": [_pairs(run.libraries) for run in runs],
        "recommend": [run.recommend for run in runs],
    }
    numbers = {name: np.full(len(runs), np.nan) for name in (*NUMBERS, "run_seconds", *SECONDS)}
    for places in _alike(runs):
        for name, values in _final([runs[place] for place in places]).items():
            numbers[name][places] = values
    known = {name: pl.Series(values, nan_to_null=True) for name, values in numbers.items()}
    return _without_types_of_nothing(pl.DataFrame({**texts, **known, "error": [run.error for run in runs]}))


def _without_types_of_nothing(table: pl.DataFrame) -> pl.DataFrame:
    """Columns without a value are of no type."""
    return table.with_columns(
        pl.Series(name, [None] * table.height) for name in table.columns if table[name].null_count() == table.height
    )


def _batches(runs: Iterable[Run]) -> Iterator[list[Run]]:
    given = iter(runs)
    while batch := list(islice(given, BATCH)):
        yield batch


def _alike(runs: Sequence[Run]) -> Iterator[list[int]]:
    """The places of the finished runs, those of one horizon and with the same columns together."""
    found: dict[tuple[int, Hashable], list[int]] = {}
    for place, run in enumerate(runs):
        if run.status == "finished":
            found.setdefault((run.horizon, kind_of(run)), []).append(place)
    for (horizon, _), places in found.items():
        size = max(1, CELLS // horizon)
        yield from (places[start : start + size] for start in range(0, len(places), size))


def _final(runs: Sequence[Run]) -> dict[str, np.ndarray]:
    """The metrics of finished runs with one horizon and the same columns, each of shape ``(runs,)``."""
    first = runs[0]
    at_end = [name for name in METRICS if name in first.columns]
    over_time = [name for name in ("feasible", "cost") if name in first.columns]
    curves = stacked(runs, [*dict.fromkeys([*at_end, "average_reward", *over_time, *SECONDS])])
    optima, at_random, resets = (
        np.array([getattr(run, name) for run in runs]) for name in ("optimum", "random_value", "reset_seconds")
    )
    found = {name: curves[name][:, -1] for name in at_end}
    # where the recommendation is for one context, what it lacks counts, not what the context is worth
    counted = optima - found["average_regret"] if first.is_constrained else curves["average_reward"][:, -1]
    scale = np.where(optima > at_random, optima, at_random + np.nan)
    for name, rewards in (("score", optima - found["simple_regret"]), ("average_score", counted)):
        found[name] = normalised_score(scale, at_random, rewards).round(TIE_DECIMALS)
    found["seconds"] = np.sum([curves[name] for name in SECONDS], axis=0).mean(axis=-1)
    found["run_seconds"] = resets + found["seconds"] * first.horizon
    found |= {name: np.array([pl.Series(row).mean() for row in curves[name]]) for name in SECONDS}
    if "feasible" in curves:
        found["feasible_share"] = curves["feasible"].mean(axis=-1)
    if "cost" in curves:
        found["total_cost"] = np.array([pl.Series(row).sum() for row in curves["cost"]])
    return found | gaps(runs)


def _pairs(named: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {what}" for name, what in sorted(named.items()))


def half_width(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Half the width of the 95 % t-interval of the mean along ``axis``; NaN with fewer than two values."""
    count = values.shape[axis]
    if count < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return _t_factor(count) * values.std(axis=axis, ddof=1)


def _t_factor(count: Any) -> Any:
    """Half the width of the 95 % t-interval of a mean of ``count`` values, in standard deviations of a value."""
    return stdtrit(count - 1, 0.5 + aggregate.CONFIDENCE / 2) / np.sqrt(count)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def _per_env(table: pl.DataFrame) -> pl.DataFrame:
    """Means and intervals for each pair that was tried; null where no run finished."""
    tried = table.filter(pl.col("status") != "skipped")
    rows = tried.group_by(["mode", "env", "agent"]).agg(
        (pl.col("status") == "finished").sum().alias("seeds"),
        (pl.col("status") == "failed").sum().alias("failed"),
        *(pl.col(name).cast(pl.Float64).mean() for name in NUMBERS),
        *(pl.col(name).cast(pl.Float64).std().alias(f"{name}_half") for name in NUMBERS),
    )
    seeds = rows["seeds"].to_numpy()
    factor = pl.Series(_t_factor(np.maximum(seeds, 2)))
    halves = rows.with_columns(pl.col(f"{name}_half") * factor for name in NUMBERS)
    pairs = [column for name in NUMBERS for column in (name, f"{name}_half")]
    ordered = halves.select("mode", "env", "agent", "seeds", "failed", *pairs)
    return ordered.sort(["env", "average_regret", "agent"], nulls_last=True)


def _choices(runs: list[Run]) -> pl.DataFrame:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.choices:
            groups.setdefault((env_label(run), run.agent), []).append(run)
    rows: list[dict[str, object]] = []
    for (env, agent), group in sorted(groups.items()):
        names = group[0].choices
        often = np.stack([selection_frequencies(run.curve("choice"), len(names)) for run in group])
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


def _groups(finished: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The rows of each mode; before them, of several modes, those of the agents that play them all."""
    modes = finished["mode"].unique().sort().to_list()
    groups = [(mode, finished.filter(pl.col("mode") == mode)) for mode in modes]
    in_all = finished.filter(pl.col("mode").n_unique().over("agent") == len(modes))
    if len(modes) > 1 and in_all["agent"].n_unique() > 1:
        groups.insert(0, (ALL_MODES, in_all))
    return groups


@dataclass(frozen=True)
class _Sample:
    """Runs of one agent in a group; arrays with the environments that it finished on their second-last axis.

    Attributes:
        envs: their places among those of the group, ascending.
        values: column -> shape ``(envs, seeds)``, with NaN where there is no run.
        equal: weights of :mod:`cbo_gym.evaluation.aggregate`.
        resamples: of the bootstrap.
    """

    envs: np.ndarray
    values: dict[str, np.ndarray]
    equal: np.ndarray
    resamples: aggregate.Resamples

    @property
    def has_interval(self) -> bool:
        """Whether the bootstrap can tell the spread: not from a single run."""
        return bool(((self.equal > 0).sum(axis=1) > 1).all())

    def on(self, envs: np.ndarray) -> tuple[np.ndarray, np.ndarray, aggregate.Resamples]:
        """Scores, equal weights and resamples on some environments; those on all, the usual case, are not copied."""
        if len(envs) == len(self.envs):
            return self.values["score"], self.equal, self.resamples
        rows = np.searchsorted(self.envs, envs)
        share = len(self.envs) / len(envs)
        return self.values["score"][rows], self.equal[rows] * share, self.resamples.on(rows)


def _compare(group: str, finished: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The rows of one group for ``overall``, ``profiles`` and ``improvement``."""
    rng = np.random.default_rng(0)
    envs, places = np.unique(finished["env"].to_numpy(), return_inverse=True)
    by_agent = finished.with_columns(pl.Series("place", places)).sort("agent").partition_by("agent", as_dict=True)
    samples = {str(agent): _sample(part, rng) for (agent,), part in by_agent.items()}
    rows = [{"group": group, "agent": agent, **_overall(sample, len(envs))} for agent, sample in samples.items()]
    ranked = pl.DataFrame(rows, infer_schema_length=None)
    ranked = ranked.sort([pl.col("envs") == pl.col("of"), "iqm", "agent"], descending=[True, True, False])
    samples = {agent: samples[agent] for agent in ranked["agent"]}
    profiles = pl.concat([_profile(group, agent, sample) for agent, sample in samples.items()])
    return ranked, profiles, _improvement(group, samples)


def _sample(runs: pl.DataFrame, rng: np.random.Generator) -> _Sample:
    envs, rows = np.unique(runs["place"].to_numpy(), return_inverse=True)
    seeds, columns = np.unique(runs["seed"].to_numpy(), return_inverse=True)
    values = {}
    for name in ("score", "average_score", "seconds", "run_seconds", *GAPS):
        values[name] = np.full((len(envs), len(seeds)), np.nan)
        values[name][rows, columns] = runs[name].cast(pl.Float64).to_numpy()
    scores = values["score"]
    resamples = aggregate.bootstrap(scores, BOOTSTRAP_DRAWS, rng)
    return _Sample(envs, values, aggregate.equal_weights(scores), resamples)


def _overall(sample: _Sample, envs: int) -> dict[str, object]:
    values, draws = sample.values, sample.resamples.weights()
    seeds = (sample.equal > 0).sum(axis=1)
    row: dict[str, object] = {"envs": len(sample.envs), "of": envs, "runs": int(seeds.sum())}
    row |= {"fewest_seeds": int(seeds.min()), "most_seeds": int(seeds.max())}
    for name, statistic, scores in (
        ("iqm", aggregate.interquartile_mean, values["score"]),
        ("score", aggregate.mean, values["score"]),
        ("average_score", aggregate.mean, values["average_score"]),
    ):
        row[name] = float(statistic(scores, sample.equal))
        low, high = aggregate.interval(statistic(scores, draws))
        row |= _ends(name, float(low), float(high), sample.has_interval)
    row |= {name: float(aggregate.mean(values[name], sample.equal)) for name in ("seconds", "run_seconds")}
    for name in GAPS:
        row |= _gap_over_envs(sample, name, draws)
    return row


def _gap_over_envs(sample: _Sample, name: str, draws: np.ndarray) -> dict[str, float | None]:
    scores = sample.values[name]
    if np.isnan(scores[sample.equal > 0]).any():  # of fewer runs it would be another mean
        return {name: None, **_ends(name, 0.0, 0.0, False)}
    low, high = aggregate.interval(aggregate.mean(scores, draws))
    value = float(aggregate.mean(scores, sample.equal))
    return {name: value, **_ends(name, float(low), float(high), sample.has_interval)}


def _ends(name: str, low: float, high: float, known: bool) -> dict[str, float | None]:
    return {f"{name}_low": low if known else None, f"{name}_high": high if known else None}


def _profile(group: str, agent: str, sample: _Sample) -> pl.DataFrame:
    scores = sample.values["score"]
    low, high = aggregate.interval(aggregate.performance_profile(scores, sample.resamples.weights(), THRESHOLDS))
    unknown = np.full(len(THRESHOLDS), np.nan)
    return pl.DataFrame(
        {
            "group": group,
            "agent": agent,
            "threshold": THRESHOLDS,
            "fraction": aggregate.performance_profile(scores, sample.equal, THRESHOLDS),
            "fraction_low": low if sample.has_interval else unknown,
            "fraction_high": high if sample.has_interval else unknown,
        }
    ).fill_nan(None)


def _improvement(group: str, samples: dict[str, _Sample]) -> pl.DataFrame:
    """Both orders of each pair that has an environment in common."""
    rows = []
    for (agent, one), (other, two) in combinations(samples.items(), 2):
        shared = np.intersect1d(one.envs, two.envs)
        if not len(shared):
            continue
        (scores, equal, draws), (others, other_equal, other_draws) = one.on(shared), two.on(shared)
        value = float(aggregate.probability_of_improvement(scores, others, equal, other_equal))
        resampled = aggregate.resampled_improvement(scores, others, draws, other_draws)
        low, high = (float(end) for end in aggregate.interval(resampled))
        known = one.has_interval and two.has_interval
        for first, second, numbers in (
            (agent, other, (value, low, high)),
            (other, agent, (1 - value, 1 - high, 1 - low)),
        ):
            row = {"group": group, "agent": first, "other": second, "envs": len(shared), "probability": numbers[0]}
            rows.append(row | _ends("probability", *numbers[1:], known))
    return pl.DataFrame(rows, schema=IMPROVEMENT_SCHEMA)
