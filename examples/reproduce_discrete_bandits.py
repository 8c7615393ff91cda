"""Causal bandits with finitely many interventions: where to intervene, and the value of observing.

* ``pomis.png``: cumulative regret on the four graphs of Lee & Bareinboim (2018), after their Fig. 5, of kl-UCB and
  Thompson sampling on all sets of variables, on the minimal intervention sets, and on the possibly optimal ones.
* ``parallel.png``: simple regret on the parallel bandit of Lattimore, Lattimore & Reid (2016): over m and over T as in
  their Fig. 2 and 4, and the worst over epsilon, which by their Theorem 1 grows like the square root of m / T.

Tables go to CSV files in the same folder. Intervals are 95 %: t-intervals over seeds; bootstrap intervals for slopes
and for the worst over epsilon. A stopped run resumes.

    python examples/reproduce_discrete_bandits.py            # everything: half an hour on one core
    python examples/reproduce_discrete_bandits.py --quick    # fewer of everything: half a minute
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from cbo_gym import make_task, sweep
from cbo_gym.agent_registry.finding import create_agent
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs import oracle_of
from cbo_gym.evaluation import load_runs
from cbo_gym.evaluation.metrics.aggregate import half_width

GRAPHS = ("Markovian", "IV", "XYZW", "XYZWST")
SETS = {"all": "all", "minimal": "minimal", "possibly_optimal": "possibly optimal"}
COLOURS = {"all": "tab:blue", "minimal": "tab:orange", "possibly_optimal": "tab:green"}
DASHES = {"UCB": "--", "TS": "-"}
# First seed of the figures; smaller seeds were played while the agents were written.
FIRST_REPORTED = 200

# Agents that search for the best arm.
FINDERS = ("ParallelBandit", "SuccessiveRejects", "UCB")
MARKERS = {"ParallelBandit": "o", "SuccessiveRejects": "s", "UCB": "^"}
# Distance of the agent's seed from the environment's.
AGENT_SEED = 10**6
RESAMPLED = 2000


# Cumulative regret ------------------------------------------------------------------------------------------


def pomis_agents() -> dict[str, tuple[str, str]]:
    """Return label -> (algorithm, sets)."""
    return {f"{algorithm}(sets={sets!r})": (algorithm, sets) for algorithm in DASHES for sets in SETS}


def play_graphs(folder: Path, graphs: Sequence[str], seeds: range, horizon: int, jobs: int) -> dict[str, dict]:
    """Return graph -> agent -> cumulative regrets, with a row for each seed."""
    curves: dict[str, dict[str, np.ndarray]] = {}
    for graph in graphs:
        env = f"CBO/{graph}Bandit-v0"
        sweep(list(pomis_agents()), [env], seeds, folder / graph, horizon=horizon, recommend="end", n_jobs=jobs)
        rows: dict[str, dict[int, np.ndarray]] = {}
        for run in load_runs(folder / graph):
            if run.status == "finished" and run.horizon == horizon and run.seed in seeds:
                rows.setdefault(run.agent, {})[run.seed] = run.table["cumulative_regret"].to_numpy()
        curves[graph] = {agent: np.stack([of[seed] for seed in sorted(of)]) for agent, of in rows.items()}
        print(f"{graph}: played", flush=True)
    return curves


def regret_table(curves: dict[str, dict]) -> pl.DataFrame:
    """Return final regrets, and their paired differences from those on all sets."""
    rows = []
    for graph, of_agents in curves.items():
        for agent, (algorithm, sets) in pomis_agents().items():
            last = of_agents[agent][:, -1]
            saved = of_agents[f"{algorithm}(sets='all')"][:, -1] - last
            rows.append(
                {
                    "graph": graph,
                    "algorithm": algorithm,
                    "sets": SETS[sets],
                    "seeds": len(last),
                    "regret": last.mean(),
                    "half_width": float(half_width(last)),
                    "worst": last.max(),
                    "less_than_all": saved.mean(),
                    "less_half_width": float(half_width(saved)),
                }
            )
    return pl.DataFrame(rows)


def draw_regrets(curves: dict[str, dict]) -> Figure:
    figure = Figure(figsize=(3.3 * len(curves) + 0.4, 3.6), layout="constrained")
    for axis, (graph, of_agents) in zip(np.atleast_1d(figure.subplots(1, len(curves))), curves.items(), strict=True):
        for agent, (algorithm, sets) in pomis_agents().items():
            values = of_agents[agent]
            rounds, mean, half = np.arange(1, values.shape[1] + 1), values.mean(axis=0), half_width(values)
            label = f"{algorithm}, {SETS[sets]}"
            axis.plot(rounds, mean, DASHES[algorithm], color=COLOURS[sets], label=label, linewidth=1.5)
            axis.fill_between(rounds, mean - half, mean + half, color=COLOURS[sets], alpha=0.15, linewidth=0)
        axis.set(title=f"{graph}Bandit", xlabel="Round t")
        axis.grid(True, alpha=0.3)
        axis.margins(x=0.01)
    figure.axes[0].set_ylabel("Cumulative regret")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    return figure


# Simple regret ----------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """A parallel bandit of 50 causes: m of them are never 1 by themselves."""

    m: int
    horizon: int
    epsilon: float


class Memory:
    """Simple regrets by agent and setting, with an entry for each seed; each pair has a file."""

    def __init__(self, folder: Path, seeds: range) -> None:
        self.folder, self.seeds = folder, seeds
        folder.mkdir(parents=True, exist_ok=True)

    def regrets(self, agent: str, setting: Setting) -> np.ndarray:
        name = "-".join(map(str, (agent, *setting, self.seeds.start, self.seeds.stop)))
        path = self.folder / f"{name}.npy"
        if not path.exists():
            np.save(path, simple_regrets(agent, setting, self.seeds))
        return np.load(path)

    def table(self, agent: str, settings: Sequence[Setting]) -> np.ndarray:
        """Return the regrets, shape ``(settings, seeds)``."""
        return np.stack([self.regrets(agent, setting) for setting in settings])


def simple_regrets(name: str, setting: Setting, seeds: range) -> np.ndarray:
    """Play the plain loop; return the simple regrets after the last round, with an entry for each seed."""
    env = gym.make("CBO/ParallelBandit-v0", rare=setting.m, epsilon=setting.epsilon).unwrapped
    task = make_task(env, 0, horizon=setting.horizon)
    expected = oracle_of(env).expected_rewards(list(range(len(task.arms)))).value
    agent = create_agent(Spec.parse(name))
    regrets = []
    for seed in seeds:
        agent.reset(task, AGENT_SEED + seed)
        observation, _ = env.reset(seed=seed)
        for _ in range(setting.horizon):
            action = agent.act(observation)
            observation, reward, _, _, info = env.step(action)
            agent.update(action, observation, float(reward), info)
        regrets.append(expected.max() - expected[int(agent.recommend())])
    return np.array(regrets)


class Worst(NamedTuple):
    """The worst mean simple regret over epsilon, with a bootstrap interval, at each value of ``x``."""

    x: np.ndarray
    value: np.ndarray
    resampled: np.ndarray  # shape (RESAMPLED, len(x))

    @property
    def interval(self) -> np.ndarray:
        """Low and high ends, shape ``(2, len(x))``."""
        return np.quantile(self.resampled, [0.025, 0.975], axis=0)

    @property
    def slope(self) -> tuple[float, float, float]:
        """Slope of the logarithm against that of ``x``, by least squares, with its interval."""
        each = np.polyfit(np.log(self.x), np.log(np.maximum(self.resampled, 1e-9)).T, 1)[0]
        own = np.polyfit(np.log(self.x), np.log(np.maximum(self.value, 1e-9)), 1)[0]
        return float(own), *np.quantile(each, [0.025, 0.975]).tolist()


def worst_over_epsilon(memory: Memory, agent: str, groups: dict[float, Sequence[Setting]]) -> Worst:
    rng = np.random.default_rng(0)
    values, resampled = [], []
    for settings in groups.values():
        table = memory.table(agent, settings)
        indices = rng.integers(table.shape[1], size=(RESAMPLED, table.shape[1]))
        values.append(table.mean(axis=1).max())
        resampled.append(table[:, indices].mean(axis=2).max(axis=0))
    return Worst(np.array(list(groups), dtype=float), np.array(values), np.stack(resampled, axis=1))


class Plan(NamedTuple):
    """The settings to play on the parallel bandit."""

    over_m: Sequence[Setting]
    over_t: Sequence[Setting]
    worst_over_t: dict[float, Sequence[Setting]]
    worst_over_m: dict[float, Sequence[Setting]]


def make_plan(quick: bool) -> Plan:
    epsilons = (0.1, 0.3) if quick else (0.5, 0.3, 0.2, 0.125, 0.08, 0.05)
    horizons = (110, 220) if quick else (100, 200, 400, 800)
    of_m, usual = ((2, 32), 110) if quick else ((2, 4, 8, 16, 32), 400)
    return Plan(
        [Setting(m, usual, 0.3) for m in of_m],
        [Setting(2, t, 0.3) for t in horizons],
        {t: [Setting(2, t, epsilon) for epsilon in epsilons] for t in horizons},
        {m: [Setting(m, usual, epsilon) for epsilon in epsilons] for m in of_m},
    )


def draw_parallel(memory: Memory, plan: Plan) -> tuple[Figure, pl.DataFrame, pl.DataFrame]:
    figure = Figure(figsize=(13.5, 3.6), layout="constrained")
    axes = figure.subplots(1, 4)
    rows: list[dict] = []
    slopes: list[dict] = []
    _draw_means(axes[0], memory, plan.over_m, "m", "m", rows)
    _draw_means(axes[1], memory, plan.over_t, "horizon", "T", rows)
    _draw_worst(axes[2], memory, plan.worst_over_t, "T", -0.5, slopes)
    _draw_worst(axes[3], memory, plan.worst_over_m, "m", 0.5, slopes)
    axes[0].set_ylabel("Simple regret")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure, pl.DataFrame(rows), pl.DataFrame(slopes)


def _draw_means(
    axis: Axes, memory: Memory, settings: Sequence[Setting], field: str, name: str, rows: list[dict]
) -> None:
    for index, agent in enumerate(FINDERS):
        table = memory.table(agent, settings)
        mean, half = table.mean(axis=1), half_width(table, axis=1)
        x = [getattr(setting, field) for setting in settings]
        axis.errorbar(x, mean, half, marker=MARKERS[agent], color=f"C{index}", label=agent, capsize=2, linewidth=1)
        rows += [
            {"agent": agent, **setting._asdict(), "regret": m, "half_width": h}
            for setting, m, h in zip(settings, mean, half, strict=True)
        ]
    fixed = settings[0]
    title = f"epsilon = {fixed.epsilon}, " + (f"T = {fixed.horizon}" if name == "m" else f"m = {fixed.m}")
    axis.set(xlabel=name, title=title, ylim=(0.0, None))
    axis.grid(True, alpha=0.3)


def _draw_worst(
    axis: Axes, memory: Memory, groups: dict[float, Sequence[Setting]], name: str, theory: float, slopes: list[dict]
) -> None:
    for index, agent in enumerate(FINDERS):
        if name == "m" and agent != FINDERS[0]:
            # The bounds of the other agents do not depend on m.
            continue
        worst = worst_over_epsilon(memory, agent, groups)
        low, high = worst.interval
        bars = np.maximum([worst.value - low, high - worst.value], 0.0)
        axis.errorbar(worst.x, worst.value, bars, marker=MARKERS[agent], color=f"C{index}", capsize=2, linewidth=1)
        slope, below, above = worst.slope
        slopes.append({"agent": agent, "over": name, "slope": slope, "low": below, "high": above, "theory": theory})
        slopes[-1] |= {f"at {x:g}": value for x, value in zip(worst.x, worst.value, strict=True) if name == "T"}
        if agent == FINDERS[0]:
            line = worst.value[0] * (worst.x / worst.x[0]) ** theory
            axis.plot(worst.x, line, ":", color="grey")
            axis.set_xscale("log")
            axis.set_xticks(worst.x, [f"{x:g}" for x in worst.x])
            axis.minorticks_off()
    fixed = next(iter(groups.values()))[0]
    title = "worst over epsilon, " + (f"T = {fixed.horizon}" if name == "m" else f"m = {fixed.m}")
    axis.set(xlabel=name, title=f"{title}\ndotted: slope {theory:g}", yscale="log")
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_yticks([0.03, 0.1, 0.3])
    axis.grid(True, which="both", alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 seeds and few rounds: half a minute")
    parser.add_argument("--out", type=Path, default=Path("runs/discrete_bandits"), help="folder of runs and figures")
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds on the four graphs")
    parser.add_argument("--seeds", type=int, default=30, help="on the four graphs")
    parser.add_argument("--runs", type=int, default=100, help="seeds on the parallel bandit")
    parser.add_argument("--jobs", type=int, default=-1, help="processes at a time; -1 for one a core")
    options = parser.parse_args()
    graphs, horizon, seeds, runs = GRAPHS, options.horizon, options.seeds, options.runs
    if options.quick:
        graphs, horizon, seeds, runs = GRAPHS[1:2], 60, 2, 3
    reported = range(FIRST_REPORTED, FIRST_REPORTED + seeds)
    curves = play_graphs(options.out / "runs", graphs, reported, horizon, 1 if options.quick else options.jobs)
    draw_regrets(curves).savefig(options.out / "pomis.png", dpi=150)
    regrets = regret_table(curves)
    memory = Memory(options.out / "parallel", range(FIRST_REPORTED, FIRST_REPORTED + runs))
    figure, means, slopes = draw_parallel(memory, make_plan(options.quick))
    figure.savefig(options.out / "parallel.png", dpi=150)
    for name, table in (("pomis", regrets), ("parallel", means), ("slopes", slopes)):
        table.write_csv(options.out / f"{name}.csv")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=3, tbl_width_chars=150):
        print(regrets, means, slopes, sep="\n")
    print(f"Figures and tables are in {options.out}")


if __name__ == "__main__":
    main()
