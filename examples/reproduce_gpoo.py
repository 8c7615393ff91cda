"""The experiments of Zhang, Tsuchida & Ong (2022), Gaussian process bandits with aggregated feedback.

Writes figures after the paper's Fig. 1, 4, 5 and 6 and tables of aggregated regrets to a folder. If it is stopped,
it continues at the next call. The tables' intervals are 95 % t-intervals over the runs.

Fig. 6 is on the function of the published program, CBO/GPBandit3-Published-v0, by the paper's Algorithm 1 and by the
program's own loop. For each number K of children a table has the logarithm of the mean regret, averaged over the
numbers S of points, with a 95 % bootstrap interval over the runs, and how often in the bootstrap that K was the best.

    python examples/reproduce_gpoo.py               # all of it, with runs of its own
    python examples/reproduce_gpoo.py --published   # figures 5 and 6 alone, the latter of published runs
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from shared.tree_plot import FUNCTION, GRID, TreeSnapshot, draw_cells, draw_posterior, draw_tree

from cbo_gym import make_task, sweep
from cbo_gym.agents.cells.gpoo import GPOO
from cbo_gym.evaluation import load_published, load_runs
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.report.palette import line_styles
from cbo_gym.evaluation.report.plots import publication_style, round_axis, save, shared_legend

# Agent -> its name in the figures. GPTree and CellGP-UCB are also run with the confidence widths of their theory.
METHODS = {
    "GPOO": "GPOO",
    "StoOO": "StoOO",
    "AVE-StoOO": "AVE-StoOO",
    "GPTree": "GPTree",
    "GPTree(scale=1.0, slope=1.0)": "GPTree, theory",
    "CellGP-UCB": "cell GP-UCB",
    "CellGP-UCB(beta='theory')": "cell GP-UCB, theory",
    "Random": "Random",
}
IN_THE_PAPER = [("GPOO", 1), ("GPOO", 10), ("StoOO", 1), ("AVE-StoOO", 10), ("GPTree", 1)]  # Fig. 4, with S
ENVS = {(i, s): f"CBO/GPBandit{i}{'-S1' if s == 1 else ''}-v0" for i in (1, 2, 3) for s in (1, 10)}
BUDGETS = {1: 80, 2: 80, 3: 25}
ARITIES, POINTS, CELL_BUDGETS = (2, 3, 4, 5), (1, 10, 20, 30, 40, 50), (25, 50)  # Fig. 6
LOOPS = {  # the two versions of GPOO in Fig. 6
    "algorithm_1": "GPOO",
    "published_loop": "cbo_gym.agents.cells.published_gpoo:PublishedGPOO",
}
RESAMPLES = 2000

# Agent and environment -> aggregated regrets, with a row for each run.
Curves = dict[tuple[str, str], np.ndarray]


def play(folder: Path, agents: Sequence[str], envs: Sequence[str], runs: int, horizon: int, jobs: int) -> Curves:
    """Return aggregated regrets after every round of every run; runs that the folder already has are kept."""
    # One folder for each budget, because StoOO and GPTree depend on the budget.
    count = sweep(agents, envs, range(runs), folder, horizon=horizon, n_jobs=jobs)
    print(f"{folder}: {count}", flush=True)
    by_seed: dict[tuple[str, str], dict[int, np.ndarray]] = {}
    for run in load_runs(folder):
        if run.status == "finished" and run.horizon == horizon and run.seed < runs:
            by_seed.setdefault((run.agent, run.env), {})[run.seed] = run.table["simple_regret"].to_numpy()
    return {key: np.stack([curves[seed] for seed in sorted(curves)]) for key, curves in by_seed.items()}


def function_of(env_id: str) -> Any:
    """Return the reward function of a one-node environment, for the figures only."""
    (reward,) = gym.make(env_id).unwrapped.scm.variables
    return lambda actions: reward.mechanism(actions, 0.0)


def table_of(curves: Curves, bandit: int, budget: int) -> pl.DataFrame:
    rows = []
    for (agent, env), regrets in curves.items():
        points = next(s for (i, s), name in ENVS.items() if (i, name) == (bandit, env))
        last = regrets[:, -1]
        rows.append(
            {
                "bandit": bandit,
                "budget": budget,
                "agent": agent,
                "S": points,
                "runs": len(last),
                "mean": last.mean(),
                "half_width": float(half_width(last)),
                "median": np.median(last),
                "worst": last.max(),
            }
        )
    return pl.DataFrame(rows).sort("mean")


@publication_style
def draw_regrets(curves: dict[int, Curves]) -> Figure:
    """Draw Fig. 4: reward functions, and aggregated regrets of the paper's methods (means, one std)."""
    styles = line_styles(f"{agent}(S={points})" for agent, points in IN_THE_PAPER)
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots(2, len(curves), squeeze=False, gridspec_kw={"height_ratios": [2, 3]})
    for (top, bottom), (bandit, own) in zip(axes.T, curves.items(), strict=True):
        function = function_of(ENVS[bandit, 1])
        values = function(GRID)
        top.plot(GRID, values, color=FUNCTION)
        top.plot(GRID[values.argmax()], values.max(), "o", color=FUNCTION, markersize=5)
        top.set(title=f"GPBandit{bandit}", xlabel="Action", ylabel="Reward", xlim=(0, 1))
        for agent, points in IN_THE_PAPER:
            style = styles[f"{agent}(S={points})"]
            regrets = own[agent, ENVS[bandit, points]]
            mean, spread = regrets.mean(axis=0), regrets.std(axis=0)
            rounds = np.arange(1, len(mean) + 1)
            name = f"{METHODS[agent]}, S={points}"
            bottom.plot(rounds, mean, color=style.colour, linestyle=style.linestyle, label=name)
            bottom.fill_between(
                rounds, (mean - spread).clip(min=0), mean + spread, color=style.colour, alpha=0.15, lw=0
            )
        bottom.set(ylabel="Aggregated regret", xlim=(1, len(rounds)))
        bottom.set_ylim(bottom=0)
        round_axis(bottom)
    shared_legend(figure)
    return figure


def play_gpoo(env_id: str, horizon: int) -> tuple[GPOO, TreeSnapshot]:
    """Play one run of GPOO, and return its tree at the end."""
    env = gym.make(env_id, max_episode_steps=horizon)
    agent = GPOO()
    observation, _ = env.reset(seed=0)
    agent.reset(make_task(env, seed=0, horizon=horizon), seed=0)
    for _ in range(horizon):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, float(reward), info)
    tree, nodes = agent.tree, np.arange(len(agent.tree))
    lower, upper = tree.cells[:, :, 0].T
    return agent, TreeSnapshot(
        lower=lower,
        upper=upper,
        depth=tree.depth,
        parent=tree.parent,
        is_leaf=tree.is_leaf,
        draws=agent.draws,
        estimate=agent.estimates(nodes),
        radius=agent.radii(nodes, horizon + 1),
        variation=agent.variation(tree.depth),
    )


@publication_style
def draw_tree_after(env_id: str, horizon: int) -> Figure:
    """Draw Fig. 1: the tree over the function, with the estimates of its leaves."""
    _, tree = play_gpoo(env_id, horizon)
    figure = Figure(figsize=(7.0, 5.2), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    top.set_title(f"GPOO on {env_id} after {horizon} rounds", loc="left")
    draw_tree(top, tree)
    draw_cells(bottom, tree, function_of(env_id))
    shared_legend(figure)
    return figure


@publication_style
def draw_two_trees(horizon: int) -> Figure:
    """Draw Fig. 5: the trees on GPBandit3 with point and with average feedback, and the posteriors below."""
    figure = Figure(figsize=(7.0, 4.8), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    for (top, bottom), points in zip(axes.T, (1, 10), strict=True):
        env_id = ENVS[3, points]
        agent, tree = play_gpoo(env_id, horizon)
        top.set_title(f"S = {points}, {horizon} rounds")
        draw_tree(top, tree)
        as_points = GRID[:, None, None] + np.array([[-1e-9], [1e-9]])
        mean, std = agent.model.gp.posterior(as_points)
        cells = np.stack([past.action[:, 0] for past in agent.history])
        rewards = np.array([past.reward for past in agent.history])
        draw_posterior(bottom, mean, std, cells, rewards, function_of(env_id))
    lowest = max(axis.get_ylim()[0] for axis in axes[0])
    axes[0, 0].set_ylim(lowest, -0.6)
    for axis in axes[:, 1]:
        axis.set_ylabel("")
    shared_legend(figure)
    return figure


def draw_grid(means: dict[int, np.ndarray], arities: Sequence[int], points: Sequence[int]) -> Figure:
    """Draw Fig. 6: log mean aggregated regret on the published GPBandit3, by S and K, a panel for each budget."""
    figure = Figure(figsize=(5.2 * len(means), 4.4), layout="constrained")
    axes = figure.subplots(1, len(means), squeeze=False)[0]
    logs = {budget: np.log(grid) for budget, grid in means.items()}
    low, high = min(g.min() for g in logs.values()), max(g.max() for g in logs.values())
    for axis, (budget, grid) in zip(axes, logs.items(), strict=True):
        image = axis.imshow(grid, cmap="viridis_r", vmin=low, vmax=high, aspect="auto", origin="lower")
        axis.set(title=f"Budget {budget}", xlabel="Number of children K", ylabel="Representative points S")
        axis.set_xticks(range(len(arities)), [str(k) for k in arities])
        axis.set_yticks(range(len(points)), [str(s) for s in points])
        for (row, column), value in np.ndenumerate(grid):
            shade = "white" if value > 0.5 * (low + high) else "black"
            axis.text(column, row, f"{value:.2f}", ha="center", va="center", color=shade, fontsize=8)
    figure.colorbar(image, ax=list(axes), label="log of the mean aggregated regret")
    return figure


def grids_of_regrets(
    folder: Path, arities: Sequence[int], points: Sequence[int], runs: int, budget: int, jobs: int
) -> dict[str, np.ndarray]:
    """Return the final aggregated regrets of each loop on the published GPBandit3, shape ``(S, K, runs)``."""
    envs = {(s, k): f"CBO/GPBandit3-Published-v0(arity={k}, points={s})" for s in points for k in arities}
    curves = play(folder, list(LOOPS.values()), list(envs.values()), runs, budget, jobs)
    return {
        loop: np.array([[curves[agent, envs[s, k]][:, -1] for k in arities] for s in points])
        for loop, agent in LOOPS.items()
    }


def published_means(arities: Sequence[int], points: Sequence[int], budgets: Sequence[int]) -> dict[int, np.ndarray]:
    """Return budget -> mean aggregated regret of the published runs of GPOO with as many rounds, shape ``(S, K)``."""
    curves: dict[str, list[np.ndarray]] = defaultdict(list)
    for run in load_published(suite="gpoo2022"):
        if run.agent == "GPOO" and run.status == "finished":
            curves[run.env].append(run.table["simple_regret"].to_numpy())
    cells = [[curves[f"CBO/GPBandit3-Published-v0(arity={k}, points={s})"] for k in arities] for s in points]
    return {n: np.array([[np.mean(cell, axis=0)[n - 1] for cell in row] for row in cells]) for n in budgets}


def table_by_children(regrets: dict[tuple[str, int], np.ndarray], arities: Sequence[int]) -> pl.DataFrame:
    """Return for each K the log mean regret, averaged over S, with a bootstrap over seeds that all cells share."""
    rows = []
    for (loop, budget), grid in regrets.items():
        runs = grid.shape[-1]
        resamples = np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs))
        scores = np.stack([np.log(grid[..., seeds].mean(axis=-1)).mean(axis=0) for seeds in resamples])
        best = scores.argmin(axis=1)
        for index, children in enumerate(arities):
            low, high = np.quantile(scores[:, index], [0.025, 0.975])
            rows.append(
                {
                    "loop": loop,
                    "budget": budget,
                    "K": children,
                    "runs": runs,
                    "mean_log_regret": np.log(grid.mean(axis=-1))[:, index].mean(),
                    "low": low,
                    "high": high,
                    "share_best": (best == index).mean(),
                }
            )
    return pl.DataFrame(rows)


def table_of_cells(
    regrets: dict[tuple[str, int], np.ndarray], arities: Sequence[int], points: Sequence[int]
) -> pl.DataFrame:
    """Return the mean regret and half of its interval, with a row for each cell of Fig. 6."""
    return pl.DataFrame(
        [
            {
                "loop": loop,
                "budget": budget,
                "S": s,
                "K": k,
                "mean": grid[row, column].mean(),
                "half_width": float(half_width(grid[row, column])),
            }
            for (loop, budget), grid in regrets.items()
            for row, s in enumerate(points)
            for column, k in enumerate(arities)
        ]
    )


def remake_fig_6(
    out: Path, arities: Sequence[int], points: Sequence[int], budgets: Sequence[int], runs: int, jobs: int
) -> None:
    """Play the runs of Fig. 6, and write its figures and tables."""
    grids = {n: grids_of_regrets(out / "runs" / f"grid{n}", arities, points, runs, n, jobs) for n in budgets}
    regrets = {(loop, n): grids[n][loop] for loop in LOOPS for n in budgets}
    for loop in LOOPS:
        means = {n: grid.mean(axis=-1) for (own, n), grid in regrets.items() if own == loop}
        save(draw_grid(means, arities, points), out, f"fig6_{loop}")
    table_of_cells(regrets, arities, points).write_csv(out / "fig6_cells.csv")
    by_children = table_by_children(regrets, arities)
    by_children.write_csv(out / "fig6_children.csv")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=3):
        print(by_children)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 runs, 10 rounds and a coarse Fig. 6, in one process")
    parser.add_argument("--out", type=Path, default=Path("runs/gpoo"), help="folder of runs, figures and table")
    parser.add_argument("--published", action="store_true", help="only figures 5 and 6, the latter of published runs")
    parser.add_argument("--runs", type=int, default=30, help="independent runs of each method")
    parser.add_argument("--jobs", type=int, default=-1, help="processes at a time; -1 for one a core")
    arguments = parser.parse_args()
    out, runs = arguments.out, 2 if arguments.quick else arguments.runs
    # Starting processes would take longer than a quick run.
    jobs = 1 if arguments.quick else arguments.jobs
    budgets = dict.fromkeys(BUDGETS, 10) if arguments.quick else BUDGETS
    fig_6 = (ARITIES[:2], POINTS[1:2], (8,)) if arguments.quick else (ARITIES, POINTS, CELL_BUDGETS)

    if arguments.published:
        save(draw_two_trees(80), out, "fig5_trees")
        save(draw_grid(published_means(ARITIES, POINTS, CELL_BUDGETS), ARITIES, POINTS), out, "fig6_published")
        print(f"Figures are in {out}")
        return
    curves, tables = {}, []
    for bandit, budget in budgets.items():
        envs = [env for (i, _), env in ENVS.items() if i == bandit]
        curves[bandit] = play(out / "runs" / f"bandit{bandit}", list(METHODS), envs, runs, budget, jobs)
        tables.append(table_of(curves[bandit], bandit, budget))
    table = pl.concat(tables)
    table.write_csv(out / "aggregated_regret.csv")
    save(draw_tree_after(ENVS[1, 10], 60), out, "fig1_tree")
    save(draw_regrets({bandit: curves[bandit] for bandit in (1, 2)}), out, "fig4_regret")
    save(draw_two_trees(80), out, "fig5_trees")
    remake_fig_6(out, *fig_6, runs, jobs)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=5):
        print(table)
    print(f"Figures and aggregated_regret.csv are in {out}")


if __name__ == "__main__":
    main()
