"""Leaderboard: compare agents by final regrets on each environment, and by normalised scores over environments."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cbo_gym._util.arguments import require_word
from cbo_gym._util.lazy import LazyMethod
from cbo_gym.agent_registry.labels import matches
from cbo_gym.errors import FEW_NAMES, ArgumentError, did_you_mean, naming_the_extra
from cbo_gym.evaluation.metrics import aggregate
from cbo_gym.evaluation.metrics.gap import GAPS
from cbo_gym.evaluation.metrics.registry import METRICS, numbers_of
from cbo_gym.evaluation.metrics.regret import normalised_score, selection_frequencies
from cbo_gym.evaluation.runs.counted import BLIND, env_label, newest
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS, Run, kind_of, last_line
from cbo_gym.evaluation.store.together import Source, runs_of

if TYPE_CHECKING:
    import pandas as pd

BOOTSTRAP_DRAWS = 2000
# Metrics that count a failed run as random play.
SCORES = ("score", "average_score")
# Largest number of runs whose tables are in memory at a time.
BATCH = 1000
# Largest number of values of a column that are in memory at a time.
CELLS = 200_000
# Scores of performance profiles, from random play to the optimum.
THRESHOLDS = np.arange(101) / 100
ALL_MODES = "all modes"
# Whether an agent of a group has enough seeds for a rank.
ENOUGH_SEEDS = pl.col("fewest_seeds") >= aggregate.MIN_SEEDS
RUNS_LISTED_BY = "cbo-gym leaderboard FOLDER --csv --table runs"
CHOICES_SCHEMA = {
    **dict.fromkeys(["env", "agent", "choice"], pl.String),
    **dict.fromkeys(["frequency", "frequency_half"], pl.Float64),
}
IMPROVEMENT_SCHEMA = {
    **dict.fromkeys(["group", "agent", "other"], pl.String),
    "envs": pl.Int64,
    **dict.fromkeys(["probability", "probability_low", "probability_high"], pl.Float64),
}


@dataclass(frozen=True)
class Leaderboard:
    """Comparison of agents at the end of their runs.

    A *group* is a feedback mode; if there are several modes, :data:`ALL_MODES` is a group of the agents that play all
    of them. Columns ``<name>_low`` and ``<name>_high`` are the ends of a 95 % bootstrap interval, for which seeds are
    resampled within each environment; they are null if an environment has fewer than :data:`~.aggregate.MIN_SEEDS`
    runs.

    If an agent failed on a seed and finished another seed of the same environment, the failed seed scores 0, like
    random play. Otherwise an agent could gain by failing on bad seeds.

    Comparisons over environments leave out blind runs, unless all runs are blind, because a store has blind runs of
    submitted agents only. They use one number of rounds for each environment, see :func:`compared_over_envs`.

    Attributes:
        per_env: a row for each environment and agent: ``mode``, ``env``, ``agent``, the number ``seeds`` of finished
            runs, and the number of ``failed`` runs. For each of
            :data:`~cbo_gym.evaluation.metrics.registry.METRICS` except the seconds a run there is the mean over seeds,
            and ``<metric>_half``, half the width of its 95 % t-interval (null with few values). A censored metric, such
            as the rounds up to a goal, is null unless all seeds reached the goal, and ``<metric>_seeds`` counts those
            that did. Agents with failed seeds come last, because metrics other than scores are means over finished
            seeds.
        overall: a row for each group and agent: the number ``envs`` of environments with finished runs, the number
            ``of`` environments in the group, the number of ``runs``, and the ``fewest_seeds`` and ``most_seeds`` on one
            of these environments; the interquartile mean ``iqm`` and the mean ``score`` of the normalised score of the
            final recommendation, and the mean ``average_score`` of the score averaged over all rounds, each with its
            interval; ``seconds`` a round and ``run_seconds`` a run; the mean of each of :data:`GAPS` with its interval,
            null if a run lacks it. Agents with all environments of the group and enough seeds on each come first, in
            the order of ``iqm``.
        profiles: performance profiles: ``group``, ``agent``, ``threshold``, the ``fraction`` of runs with a score
            above it, and its interval.
        improvement: a row for each ordered pair of agents in a group: the ``probability`` that a run of ``agent``
            scores higher than a run of ``other``, with its interval, on the number ``envs`` of environments that both
            have finished.
        choices: a row for each environment, agent and target set or scope that the agent chose: the mean over seeds of
            the ``frequency`` of rounds with this choice, and ``frequency_half`` as in ``per_env``.
        table: a row for each run, also for runs that failed or were skipped: ``status``, ``mode``, ``env``, ``agent``,
            ``seed``, ``version``, ``date``, ``machine``, ``sources``, ``libraries``, ``recommend``, all metrics (a
            censored one is infinite if the run did not reach it), ``error``.
        runs, failed, skipped: the runs with each status.
        replaced: number of runs that were left out because there is a newer run, see :func:`newest`.
        unverified: runs that have not been checked, which the tables leave out.
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

    plot = LazyMethod("cbo_gym.evaluation.report.plots:plot_board", "Compare agents in a figure of Matplotlib.")
    _repr_html_ = LazyMethod("cbo_gym.evaluation.report.page:show_board", "HTML for a notebook.")

    def __repr__(self) -> str:
        """Return a line for each group and agent, with the scores over environments."""
        names = ["group", "agent", "envs", "runs", "iqm", "iqm_low", "iqm_high", "average_score"]
        with pl.Config(
            tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, fmt_str_lengths=60, float_precision=3,
            tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True,
        ):  # fmt: skip
            return str(self.overall.select(names))

    @property
    def groups(self) -> list[str]:
        """Names of the groups: all modes first, then each mode."""
        return self.overall["group"].unique(maintain_order=True).to_list()

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """Name of a file of the report -> its table; the table of runs is named ``"runs"``."""
        names = ("overall", "per_env", "profiles", "improvement", "choices")
        return {**{name: getattr(self, name) for name in names}, "runs": self.table}

    def to_pandas(self, name: str = "overall") -> pd.DataFrame:
        """Return one of the tables as a data frame of pandas.

        Args:
            name: ``"overall"``, ``"per_env"``, ``"profiles"``, ``"improvement"``, ``"choices"``, or ``"table"``, which
                has one row per run.

        Raises:
            ArgumentError: if there is no table of that name.
            MissingExtraError: if pandas or pyarrow is not installed.
        """
        frames = self.frames
        frames["table"] = frames.pop("runs")
        require_word("name", name, frames)
        with naming_the_extra("a data frame of pandas"):
            return frames[name].to_pandas()

    @property
    def seeds(self) -> int:
        """Largest number of seeds that an agent has finished or failed on an environment."""
        tried = self.table.filter(pl.col("status") != "skipped")
        return int(tried.group_by("env", "agent").agg(pl.col("seed").n_unique())["seed"].max())  # type: ignore[arg-type]


def leaderboard(
    source: Source,
    *,
    beside: Path | str | Iterable[Path | str] = (),
    modes: str | Sequence[str] = (),
    envs: str | Sequence[str] = (),
    agents: str | Sequence[str] = (),
) -> Leaderboard:
    """Compare the runs of a folder, or one or more runs given directly.

    Scores are normalised to 0 for random play and 1 for the optimum, see
    :func:`cbo_gym.evaluation.metrics.regret.normalised_score`. If there are several runs of an agent on an environment
    with a seed, the newest is used. Unverified runs are never ranked.

    Args:
        source: a run, runs, a folder that a sweep wrote, or published results (a path, or a name of the package's).
        beside: other folders or published results, whose runs on the environments of ``source`` are compared too:
            those with the same number of rounds, or if there are none, with a warning, those with others. Another
            warning names runs of other code.
        modes: only this feedback mode, or these; all if empty.
        envs: only environments that match this name, or one of these: :func:`cbo_gym.agent_registry.labels.matches`.
        agents: only agents that match this name, or one of these.

    Raises:
        ArgumentError: if no finished run matches.
    """
    modes, envs, agents = ([names] if isinstance(names, str) else names for names in (modes, envs, agents))
    remaining = iter(runs_of(source, beside))
    all_runs: list[Run] = []
    selected: list[Run] = []
    frames: list[pl.DataFrame] = []
    while batch := list(islice(remaining, BATCH)):
        matching = [
            run
            for run in batch
            if (not modes or run.mode in modes)
            and (not envs or matches(run.env, envs))
            and (not agents or matches(run.agent, agents))
        ]
        all_runs += batch
        selected += matching
        frames.append(_numbers(matching))
    if not selected and all_runs:
        patterns = {"modes": modes, "environments": envs, "agents": agents}
        raise ArgumentError(f"none of the {len(all_runs)} runs matches{_describe_available(all_runs, patterns)}")
    verified = [run for run in selected if not run.unverified]
    if not verified and selected:
        raise ArgumentError(
            f"all {len(selected)} runs are unverified, and such runs are not ranked; cbo-gym check-submission checks "
            "them"
        )
    runs = newest(verified)
    if not any(run.status == "finished" for run in runs):
        raise ArgumentError(_explain_no_finished_run(source, runs))
    require_scales(runs)
    row_of = {id(run): row for row, run in enumerate(selected)}
    numbers = pl.concat(frames, how="vertical_relaxed")
    table = _without_empty_types(numbers[[row_of[id(run)] for run in runs]])
    has_finished_seed = (pl.col("status") == "finished").any().over("env", "agent")
    scored = failures_as_random(table, has_finished_seed)
    tables_by_group = [_compare(group, rows) for group, rows in _groups(compared_over_envs(scored))]
    overall, profiles, improvement = (
        pl.concat(tables, how="vertical_relaxed") for tables in zip(*tables_by_group, strict=True)
    )
    return Leaderboard(
        per_env=_per_env(scored),
        overall=overall,
        profiles=profiles,
        improvement=improvement,
        choices=_choices([run for run in runs if run.status == "finished"]),
        table=table,
        runs=tuple(run for run in runs if run.status == "finished"),
        failed=tuple(run for run in runs if run.status == "failed"),
        skipped=tuple(run for run in runs if run.status == "skipped"),
        replaced=len(verified) - len(runs),
        unverified=tuple(run for run in selected if run.unverified),
    )


def _explain_no_finished_run(source: Source, runs: Sequence[Run]) -> str:
    """Explain why there is no finished run, and how to get one."""
    if not runs:
        where = f" in {source}" if isinstance(source, str | Path) else ""
        return (
            f"there is no finished run{where}, nor any other; play some: cbo-gym sweep FOLDER -a AGENT -e ENVIRONMENT"
        )
    reasons = Counter(f"{run.status}: {last_line(run.error)}" for run in runs)
    (reason, count), *_ = reasons.most_common(1)
    return f"there is no finished run among {len(runs)}; {count} of them {reason}"


def final_numbers(runs: Sequence[Run]) -> pl.DataFrame:
    """Return a row per run: metadata, and final metrics (null unless it finished); raise as :func:`require_scales`."""
    require_scales(runs)
    return _numbers(runs)


def failures_as_random(table: pl.DataFrame, condition: bool | pl.Expr = True) -> pl.DataFrame:
    """Give the failed runs in a table of :func:`final_numbers` the scores of random play, if ``condition`` holds."""
    failed = (pl.col("status") == "failed") & condition
    return table.with_columns(pl.when(failed).then(0.0).otherwise(pl.col(name)).alias(name) for name in SCORES)


def compared_over_envs(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are compared over environments, of a table with ``env``, ``agent`` and ``score``.

    Rows without a score are left out, and so are blind runs, unless all are blind. If an environment was played with
    several numbers of rounds or sizes of batches, only the label ``env`` that most agents finished is used; of several
    such labels, the one with most rounds.
    """
    scored = rows.filter(pl.col("score").is_not_null())
    ordinary = scored.filter(~pl.col("env").str.ends_with(BLIND))
    candidates = ordinary if ordinary.height else scored
    counts = candidates.group_by("env").agg(agents=pl.col("agent").n_unique()).sort("env")
    rounds = pl.col("env").str.extract(r", T=(\d+)").cast(pl.Int64)
    ranked = counts.sort("agents", rounds, descending=True, maintain_order=True)
    labels = ranked.unique(pl.col("env").str.replace(r", T=.*$", ""), keep="first")["env"]
    return candidates.filter(pl.col("env").is_in(labels.to_list()))


def require_scales(runs: Iterable[Run]) -> None:
    """Raise ArgumentError unless the optimum of every finished run is better than a random action."""
    scales = np.array([(run.optimum, run.random_value) for run in runs if run.status == "finished"]).reshape(-1, 2)
    normalised_score(scales[:, 0], scales[:, 1], scales[:, 0])


def _numbers(runs: Sequence[Run]) -> pl.DataFrame:
    """Return the rows of :func:`final_numbers`; a score is null if the optimum is no better than a random action."""
    fields = ("status", "mode", "env", "agent", "seed", "version", "date", "machine", "sources", "libraries")
    metadata = {name: [getattr(run, name) for run in runs] for name in (*fields, "recommend")}
    metadata["env"] = [env_label(run) for run in runs]
    for name in ("sources", "libraries"):
        metadata[name] = [
            ", ".join(f"{key} {value}" for key, value in sorted(versions.items())) for versions in metadata[name]
        ]
    numbers = {name: np.full(len(runs), np.nan) for name in METRICS}
    # Rows of runs with the same horizon and columns.
    groups: defaultdict[tuple[int, Hashable], list[int]] = defaultdict(list)
    for row, run in enumerate(runs):
        if run.status == "finished":
            groups[run.horizon, kind_of(run)].append(row)
    for (horizon, _), rows in groups.items():
        size = max(1, CELLS // horizon)
        for start in range(0, len(rows), size):
            chunk = rows[start : start + size]
            for name, values in numbers_of([runs[row] for row in chunk]).items():
                numbers[name][chunk] = values
    columns = {name: pl.Series(values, nan_to_null=True) for name, values in numbers.items()}
    return _without_empty_types(pl.DataFrame({**metadata, **columns, "error": [run.error for run in runs]}))


def _without_empty_types(table: pl.DataFrame) -> pl.DataFrame:
    """Give columns without a value the type Null."""
    empty = [name for name in table.columns if table[name].null_count() == table.height]
    return table.with_columns(pl.lit(None).alias(name) for name in empty)


def _describe_available(runs: Iterable[Run], patterns: Mapping[str, Iterable[str]]) -> str:
    """List the modes, environments and agents of runs for a message, after those closest to ``patterns``."""
    columns = zip(*((run.mode, run.env, run.agent) for run in runs), strict=True)
    hints, lists, ending = "", [], ""
    for (field, field_patterns), column in zip(patterns.items(), columns, strict=True):
        names = sorted(set(column))
        unmatched = [pattern for pattern in field_patterns if not any(matches(name, [pattern]) for name in names)]
        hints += "".join(did_you_mean(pattern, names) for pattern in unmatched)
        if len(names) <= FEW_NAMES:
            lists.append(f"the {field} {', '.join(names)}")
        else:
            lists.append(f"{len(names)} {field}")
            ending = f"; {RUNS_LISTED_BY} lists them"
    return f"{hints}; there are {lists[0]}, {lists[1]} and {lists[2]}{ending}"


def _per_env(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table ``per_env``."""
    tried = table.filter(pl.col("status") != "skipped")
    names = [name for name in METRICS if name not in ("run_seconds", *TIMING_COLUMNS)]
    censored = [name for name in names if METRICS[name].censored]
    rows = (
        tried.with_columns(pl.col(names).cast(pl.Float64))
        .group_by("mode", "env", "agent")
        .agg(
            (pl.col("status") == "finished").sum().alias("seeds"),
            (pl.col("status") == "failed").sum().alias("failed"),
            pl.col(names).mean(),
            pl.col(names).std().name.suffix("_half"),
            pl.col(names).count().name.suffix("_count"),
            pl.col(censored).is_finite().sum().name.suffix("_seeds"),
        )
    )
    for name in names:
        counts = np.maximum(rows[f"{name}_count"].to_numpy(), 2)
        half = pl.col(f"{name}_half") * pl.Series(aggregate.t_factor(counts))
        rows = rows.with_columns(pl.when(pl.col(f"{name}_count") >= aggregate.MIN_SEEDS).then(half))
    for name in censored:
        # The mean is null unless every seed reached the metric.
        has_values, reached = pl.col(f"{name}_count") > 0, pl.col(f"{name}_seeds")
        rows = rows.with_columns(
            pl.when(has_values & (reached == pl.col("seeds"))).then(pl.col(name, f"{name}_half")),
            pl.when(has_values).then(reached).alias(f"{name}_seeds"),
        )
    columns = [[name, f"{name}_half", *([f"{name}_seeds"] if name in censored else [])] for name in names]
    ordered = rows.select("mode", "env", "agent", "seeds", "failed", *chain.from_iterable(columns))
    return ordered.sort(["env", pl.col("failed") > 0, "average_regret", "agent"], nulls_last=True)


def _choices(runs: Iterable[Run]) -> pl.DataFrame:
    """Return the table ``choices``."""
    groups: defaultdict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.choices:
            groups[env_label(run), run.agent].append(run)
    rows: list[tuple[object, ...]] = []
    for (env, agent), group in sorted(groups.items()):
        names = group[0].choices
        frequencies = np.stack([selection_frequencies(run.curve("choice"), len(names)) for run in group])
        half = aggregate.half_width(frequencies)
        for name, mean, width in zip(names, frequencies.mean(axis=0).tolist(), half.tolist(), strict=True):
            if mean:
                rows.append((env, agent, name, mean, None if np.isnan(width) else width))
    return pl.DataFrame(rows, schema=CHOICES_SCHEMA, orient="row")


def _groups(finished: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the name and the rows of each group, see :class:`Leaderboard`."""
    modes = finished["mode"].unique().sort().to_list()
    groups = [(mode, finished.filter(pl.col("mode") == mode)) for mode in modes]
    in_all = finished.filter(pl.col("mode").n_unique().over("agent") == len(modes))
    if len(modes) > 1 and in_all["agent"].n_unique() > 1:
        groups.insert(0, (ALL_MODES, in_all))
    return groups


@dataclass(frozen=True)
class _Sample:
    """Runs of an agent in a group.

    Attributes:
        envs: indices of the environments that the agent finished, among those of the group, ascending.
        values: name of a metric -> its values, shape ``(envs, seeds)``; NaN if there is no run.
        weights: equal weights of :mod:`cbo_gym.evaluation.metrics.aggregate`, shape ``(envs, seeds)``.
        resamples: bootstrap resamples of the runs.
    """

    envs: np.ndarray
    values: dict[str, np.ndarray]
    weights: np.ndarray
    resamples: aggregate.Resamples

    @property
    def has_interval(self) -> bool:
        """Whether every environment has enough runs."""
        return bool(((self.weights > 0).sum(axis=1) >= aggregate.MIN_SEEDS).all())

    def select(self, envs: np.ndarray) -> tuple[np.ndarray, np.ndarray, aggregate.Resamples]:
        """Return scores, equal weights and resamples on some of the environments."""
        # All environments need no copy.
        if len(envs) == len(self.envs):
            return self.values["score"], self.weights, self.resamples
        rows = np.searchsorted(self.envs, envs)
        weights = self.weights[rows] * (len(self.envs) / len(envs))
        return self.values["score"][rows], weights, self.resamples.select(rows)


def _compare(group: str, finished: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the rows of one group for ``overall``, ``profiles`` and ``improvement``."""
    rng = np.random.default_rng(0)
    envs, indices = np.unique(finished["env"].to_numpy(), return_inverse=True)
    by_agent = finished.with_columns(pl.Series("index", indices)).sort("agent").partition_by("agent", as_dict=True)
    samples = {str(agent): _sample(rows, rng) for (agent,), rows in by_agent.items()}
    rows, profiles = [], {}
    for agent, sample in samples.items():
        # The weights of one agent at a time are in memory, because they are large.
        draws = sample.resamples.weights()
        rows.append({"group": group, "agent": agent, **_overall(sample, draws, len(envs))})
        profiles[agent] = _profile(group, agent, sample, draws)
    ranked = pl.DataFrame(rows, infer_schema_length=None)
    complete = pl.col("envs") == pl.col("of")
    ranked = ranked.sort([complete, complete & ENOUGH_SEEDS, "iqm", "agent"], descending=[True, True, True, False])
    samples = {agent: samples[agent] for agent in ranked["agent"]}
    return ranked, pl.concat([profiles[agent] for agent in samples]), _improvement(group, samples)


def _sample(runs: pl.DataFrame, rng: np.random.Generator) -> _Sample:
    envs, rows = np.unique(runs["index"].to_numpy(), return_inverse=True)
    seeds, columns = np.unique(runs["seed"].to_numpy(), return_inverse=True)
    values = {}
    for name, metric in METRICS.items():
        if metric.over_envs:
            values[name] = np.full((len(envs), len(seeds)), np.nan)
            values[name][rows, columns] = runs[name].cast(pl.Float64).to_numpy()
    scores = values["score"]
    resamples = aggregate.bootstrap(scores, BOOTSTRAP_DRAWS, rng)
    return _Sample(envs, values, aggregate.equal_weights(scores), resamples)


def _overall(sample: _Sample, draws: np.ndarray, envs: int) -> dict[str, object]:
    """Return the columns of the table ``overall`` of an agent, without its labels."""
    seeds = (sample.weights > 0).sum(axis=1)
    row: dict[str, object] = {"envs": len(sample.envs), "of": envs, "runs": int(seeds.sum())}
    row |= {"fewest_seeds": int(seeds.min()), "most_seeds": int(seeds.max())}
    row |= _statistic("iqm", sample, aggregate.interquartile_mean, sample.values["score"], draws)
    # GAP comes last, because few suites are compared by it.
    for name in sorted(sample.values, key=lambda name: name in GAPS):
        values = sample.values[name]
        if METRICS[name].over_envs == "mean":
            # Failed seeds have no value.
            row[name] = float(aggregate.mean(values, aggregate.equal_weights(values)))
        elif np.isnan(values[sample.weights > 0]).any():
            # The mean of fewer runs would not be comparable.
            row |= {name: None, f"{name}_low": None, f"{name}_high": None}
        else:
            row |= _statistic(name, sample, aggregate.mean, values, draws)
    return row


def _statistic(
    name: str, sample: _Sample, statistic: Callable[..., Any], values: np.ndarray, draws: np.ndarray
) -> dict[str, float | None]:
    value, (low, high) = statistic(values, sample.weights), aggregate.interval(statistic(values, draws))
    return aggregate.with_ends(name, float(value), float(low), float(high), sample.has_interval)


def _profile(group: str, agent: str, sample: _Sample, draws: np.ndarray) -> pl.DataFrame:
    scores = sample.values["score"]
    low, high = aggregate.interval(aggregate.performance_profile(scores, draws, THRESHOLDS))
    if not sample.has_interval:
        low = high = np.full(len(THRESHOLDS), np.nan)
    return pl.DataFrame(
        {
            "group": group,
            "agent": agent,
            "threshold": THRESHOLDS,
            "fraction": aggregate.performance_profile(scores, sample.weights, THRESHOLDS),
            "fraction_low": low,
            "fraction_high": high,
        }
    ).fill_nan(None)


def known_improvement(board: Leaderboard, group: str) -> pl.DataFrame:
    """Return a group's rows of ``improvement`` that have an interval, because both agents have enough seeds."""
    return board.improvement.filter(pl.col("group") == group, pl.col("probability_low").is_not_null())


def compared_agents(board: Leaderboard, group: str) -> list[str]:
    """Return the agents of :func:`known_improvement`, in the order of ``overall``."""
    agents, compared = board.overall.filter(pl.col("group") == group)["agent"], known_improvement(board, group)["agent"]
    return agents.filter(agents.is_in(compared.to_list())).to_list()


def _improvement(group: str, samples: dict[str, _Sample]) -> pl.DataFrame:
    """Return the rows of each ordered pair of agents with a common environment."""
    rows = []
    for (agent, sample), (other, other_sample) in combinations(samples.items(), 2):
        shared = np.intersect1d(sample.envs, other_sample.envs)
        if not len(shared):
            continue
        scores, weights, draws = sample.select(shared)
        other_scores, other_weights, other_draws = other_sample.select(shared)
        value = float(aggregate.probability_of_improvement(scores, other_scores, weights, other_weights))
        resampled = aggregate.resampled_improvement(scores, other_scores, draws, other_draws)
        low, high = (float(end) for end in aggregate.interval(resampled))
        has_interval = sample.has_interval and other_sample.has_interval
        for first, second, numbers in (
            (agent, other, (value, low, high)),
            (other, agent, (1 - value, 1 - high, 1 - low)),
        ):
            labels = {"group": group, "agent": first, "other": second, "envs": len(shared)}
            rows.append(labels | aggregate.with_ends("probability", *numbers, has_interval))
    return pl.DataFrame(rows, schema=IMPROVEMENT_SCHEMA)
