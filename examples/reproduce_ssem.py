"""The experiments of Bauschmann & Maghsudi (2026), Graph structured combinatorial semi-bandit.

Writes figures after the paper's Fig. 2, 4 and 5 (regret on random systems) and 3 and 6 (delays in a train network) to a
folder, with a table of regrets. An instance is a random system; regrets are averaged over rounds and given in per cent
of the instance's optimal reward; intervals are 95 % t-intervals over instances. If it is stopped, it continues.

    python examples/reproduce_ssem.py            # everything
    python examples/reproduce_ssem.py --trains   # the train network alone, in a minute or two
    python examples/reproduce_ssem.py --tune     # other scales of the confidence bounds

The widths of SSEM-UCB's confidence intervals were chosen on SSEMPeriodic (instances 0 to 4, 100 to 104 and 200),
SSEMTanh (0 to 4) and SSEMArcsine (0 and 1); of these only SSEMPeriodic 200 is in the figures. ``--tune`` shows what
other scales do.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import networkx as nx
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from cbo_gym import make_task, sweep
from cbo_gym.agents import SSEMUCBJO
from cbo_gym.agents.super_arms.separable_fit import SeparableSystem
from cbo_gym.evaluation import load_runs
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.report.curves import format_tick, log_limits, log_ticks
from cbo_gym.evaluation.report.palette import line_styles
from cbo_gym.evaluation.report.plots import mean_curve, publication_style, round_axis, save, shared_legend
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from cbo_gym.scm import Intervention

JO = {f"SSEM-UCB-JO(corrected=False, degree={q})": f"SSEM-UCB-JO, q = {q}" for q in (1, 2, 3, 4)}  # as published
JO |= {"SSEM-UCB-JO": "SSEM-UCB-JO, corrected"}
RIVALS = {"SEM-UCB": "SEM-UCB", "METS": "METS", "SGB": "SGB", "IGP-UCB": "IGP-UCB", "Random": "Random"}
NORM = {"SSEM-UCB-Norm": "SSEM-UCB-Norm"}
REFERENCE = "SSEM-UCB-JO"
TUNED_ON = range(100, 104)
FIRST_REPORTED = 200
# Seed of a picture on the page of the paper.
TRAIN_SEED = PUBLICATION.start
SCALES = ((0.0, 0.0), (0.1, 0.0), (0.3, 0.0), (0.6, 0.0), (0.3, 0.0003), (0.3, 0.001))


class Trial(NamedTuple):
    """One figure of regrets."""

    figure: str
    env: str
    instances: int
    methods: dict[str, str]  # agent -> its name in the figure


TRIALS = (
    Trial("fig2_periodic", "CBO/SSEMPeriodic-v0", 10, JO | RIVALS),
    Trial("fig4_tanh", "CBO/SSEMTanh-v0", 10, JO | NORM | RIVALS),
    Trial("fig5_arcsine", "CBO/SSEMArcsine-v0", 10, JO | NORM | RIVALS),
)

# Agent -> time-averaged regrets in per cent of the optimum, with a row for each instance.
Curves = dict[str, np.ndarray]


def play(folder: Path, env: str, agents: Sequence[str], instances: Sequence[int], horizon: int, jobs: int) -> Curves:
    """Return the curves of every agent; runs that the folder already has are kept."""
    envs = [f"{env}(instance_seed={i})" for i in instances]
    count = sweep(agents, envs, [0], folder, horizon=horizon, n_jobs=jobs)
    print(f"{folder}: {count}", flush=True)
    by_agent: dict[str, dict[str, np.ndarray]] = {}
    for run in load_runs(folder):
        if run.status == "finished" and run.horizon == horizon and run.env in envs:
            regret = 100.0 * run.table["average_regret"].to_numpy() / run.optimum
            by_agent.setdefault(run.agent, {})[run.env] = regret
    return {agent: np.stack([by_env[e] for e in envs if e in by_env]) for agent, by_env in by_agent.items()}


@publication_style
def draw_regrets(curves: Curves, methods: dict[str, str], title: str) -> Figure:
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    axis = figure.subplots()
    styles = line_styles(methods)
    for agent, name in methods.items():
        if agent in curves:
            mean_curve(axis, curves[agent], name, styles[agent], floor=0.01)
    axis.set(ylabel="Average regret $R_t/t$\n(% of the optimal reward)", title=title, yscale="log")
    # Scaled to the means, because with few instances the bands would fill the panel.
    low, high = log_limits([line.get_ydata()[len(line.get_ydata()) // 50 :] for line in axis.lines])
    axis.set_ylim(low, high)
    axis.yaxis.set_major_locator(FixedLocator(log_ticks(low, high)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
    axis.yaxis.set_minor_locator(NullLocator())
    round_axis(axis)
    shared_legend(figure)
    return figure


def table_of(trial: Trial, curves: Curves) -> pl.DataFrame:
    """Return final regrets, and their differences from the reference's on the same instances."""
    rows = []
    for agent, name in trial.methods.items():
        last = curves[agent][:, -1]
        excess = last - curves[REFERENCE][:, -1]
        rows.append(
            {
                "problem": trial.env.removeprefix("CBO/").removesuffix("-v0"),
                "method": name,
                "instances": len(last),
                "regret": last.mean(),
                "half_width": float(half_width(last)),
                "median": float(np.median(last)),
                "worst": last.max(),
                "excess": excess.mean(),
                "excess_half_width": float(half_width(excess)),
            }
        )
    return pl.DataFrame(rows)


class Snapshot(NamedTuple):
    """The agent's posterior of the network after a number of rounds."""

    rounds: int
    system: SeparableSystem


class Journey(NamedTuple):
    """A run on the train network: super arms of shape ``(rounds, stations)``, and snapshots of the learned network."""

    stations: tuple[str, ...]
    super_arms: np.ndarray
    snapshots: list[Snapshot]
    env: Any


def travel(rounds: int, when: Sequence[int], super_arm_size: int) -> Journey:
    """Play the paper's SSEM-UCB-JO of degree 3 with the alternative external bound, as in its appendix G2."""
    env = gym.make("CBO/TrainDelay-v0", max_episode_steps=rounds, super_arm_size=super_arm_size)
    task = make_task(env, seed=TRAIN_SEED)
    agent = SSEMUCBJO(degree=3, corrected=False, external="sum", external_scale=0.0003)
    agent.reset(task, seed=TRAIN_SEED)
    observation, _ = env.reset(seed=TRAIN_SEED)
    snapshots = []
    for t in range(1, rounds + 1):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, float(reward), info)
        if t in when and agent.model.system is not None:
            snapshots.append(Snapshot(t, agent.model.system))
    return Journey(task.nodes[:-1], np.array([past.action for past in agent.history]), snapshots, env.unwrapped)


def reconstruct(system: SeparableSystem, stays: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the delays of all stations, and the number of weak links on cycles dropped to obtain a solution.

    The agent selects few stations at a time, and guarantees a solution only for such super arms.
    """
    dropped = 0
    while True:
        try:
            return system.solve(stays), dropped
        except ArithmeticError:
            system = system.without_weakest_edge_on_a_cycle()
            dropped += 1


def draw_progress(journey: Journey, hours: int = 40) -> Figure:
    """Draw Fig. 3: predicted delays of all stations from all signals, in hours that the agent did not see."""
    scm = journey.env.scm
    noise = scm.draw_noise(np.random.default_rng(1), hours)
    values = scm.propagate(noise, Intervention(tuple(np.ones(len(journey.stations)))))
    actual = np.stack([values[name] for name in journey.stations], axis=1)
    stays = np.stack([values[name] for name in scm.exogenous], axis=1)
    figure = Figure(figsize=(11.5, 4.8), layout="constrained")
    axes = figure.subplots(1, len(journey.snapshots) + 1, sharey=True, squeeze=False)[0]
    limits = {"vmin": actual.min(), "vmax": actual.max(), "aspect": "auto", "interpolation": "nearest"}
    image = axes[0].imshow(actual.T, **limits)
    axes[0].set_title("Delays to reconstruct", fontsize=9)
    for axis, snapshot in zip(axes[1:], journey.snapshots, strict=True):
        delays, dropped = reconstruct(snapshot.system, stays)
        axis.imshow(delays.T, **limits)
        error = 100.0 * np.sqrt(np.mean((delays - actual) ** 2)) / actual.std()
        links = f", less {dropped} links" if dropped else ""
        axis.set_title(f"After {snapshot.rounds} rounds{links}:\nerror {error:.0f} % of the std", fontsize=9)
    axes[0].set_yticks(range(len(journey.stations)), journey.stations, fontsize=7)
    for axis in axes:
        axis.set_xlabel("Hour")
    figure.colorbar(image, ax=list(axes), label="Delay above the least (units of the problem)")
    return figure


def draw_selections(journey: Journey, rounds: int) -> Figure:
    """Draw Fig. 6: the selected super arms, and the final cluster on the learned network."""
    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [3, 2]})
    shown = journey.super_arms[:rounds]
    left.imshow(
        shown.T, aspect="auto", cmap="Blues", interpolation="nearest", extent=(0.5, len(shown) + 0.5, 19.5, -0.5)
    )
    left.set_yticks(range(len(journey.stations)), journey.stations, fontsize=7)
    left.set(xlabel="Round t", title="Stations selected")
    _draw_network(right, journey)
    return figure


def _draw_network(axis: Axes, journey: Journey) -> None:
    strength = np.abs(journey.snapshots[-1].system.coefficients).sum(axis=0)
    graph = nx.DiGraph()
    graph.add_nodes_from(journey.stations)
    for effect, cause in zip(*np.nonzero(strength), strict=True):
        graph.add_edge(journey.stations[cause], journey.stations[effect], width=strength[effect, cause])
    chosen = journey.super_arms[-1] > 0
    nx.draw_networkx(
        graph,
        nx.circular_layout(graph),
        ax=axis,
        node_color=np.where(chosen, "#E69F00", "lightgrey"),
        width=[0.4 + 1.6 * min(w, 1.0) for *_, w in graph.edges(data="width")],
        edge_color="grey",
        node_size=560,
        font_size=6,
        arrowsize=7,
    )
    axis.set_title(f"The network as learned; orange: selected in round {len(journey.super_arms)}")
    axis.axis("off")


def tune(folder: Path, horizon: int, jobs: int) -> pl.DataFrame:
    """Return regrets of SSEM-UCB-JO by its two scales, on instances that no figure shows."""
    agents = {
        f"SSEM-UCB-JO(external_scale={external}, internal_scale={internal})": (internal, external)
        for internal, external in SCALES
    }
    curves = play(folder, "CBO/SSEMPeriodic-v0", list(agents), TUNED_ON, horizon, jobs)
    rows = [
        {
            "internal_scale": i,
            "external_scale": e,
            "regret": c.mean(),
            "half_width": float(half_width(c)),
            "worst": c.max(),
        }
        for agent, (i, e) in agents.items()
        for c in [curves[agent][:, -1]]
    ]
    return pl.DataFrame(rows).sort("regret")


def compare(out: Path, horizon: int, jobs: int, quick: bool) -> pl.DataFrame:
    """Play and draw figures 2, 4 and 5, and write the table of regrets."""
    tables = []
    for trial in TRIALS[:1] if quick else TRIALS:
        rounds, instances = (10, 1) if quick else (horizon, trial.instances)
        methods = {a: n for a, n in trial.methods.items() if not quick or a in (REFERENCE, "SGB", "Random")}
        chosen = range(FIRST_REPORTED, FIRST_REPORTED + instances)
        curves = play(out / "runs", trial.env, list(methods), chosen, rounds, jobs)
        tables.append(table_of(trial._replace(methods=methods), curves))
        save(draw_regrets(curves, methods, f"{trial.env}, instances: {instances}"), out, trial.figure)
    return pl.concat(tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="1 instance and 10 rounds of fewer methods, in one process"
    )
    parser.add_argument("--trains", action="store_true", help="only the train network, figures 3 and 6")
    parser.add_argument("--tune", action="store_true", help="only the comparison of scales")
    parser.add_argument("--out", type=Path, default=Path("runs/ssem"), help="folder of runs, figures and table")
    parser.add_argument("--horizon", type=int, default=2000, help="rounds of a run")
    parser.add_argument("--jobs", type=int, default=-1, help="processes at a time; -1 for one a core")
    arguments = parser.parse_args()
    out, jobs = arguments.out, 1 if arguments.quick else arguments.jobs
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=2, tbl_width_chars=130):
        if arguments.tune:
            print(tune(out / "tune", 1000, jobs))
            return
        if not arguments.trains:
            table = compare(out, arguments.horizon, jobs, arguments.quick)
            table.write_csv(out / "regret.csv")
            print(table)
    journey = travel(36, (32, 36), 2) if arguments.quick else travel(342, (11, 40, 342), 6)
    save(draw_progress(journey), out, "fig3_progress")
    save(draw_selections(journey, 150), out, "fig6_selections")
    print(f"Figures{'' if arguments.trains else ' and regret.csv'} are in {out}")


if __name__ == "__main__":
    main()
