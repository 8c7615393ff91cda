"""Average regret on the eight games of the CBO-MW paper, against its adversary and one that sees only past actions.

Sussex, Sessa, Makarova and Krause (2024), "Adversarial causal Bayesian optimization", sec. 5. In the paper's program
the adversary answers the agent's mixed strategy of the round: for multiplicative weights these weights, for an agent
that chooses one action, that action. In one of five rounds it moves at random. An
environment sees actions only, so its adversary answers past play; this script passes the mixed strategy to it.

Tables have means over seeds with 95 % t-intervals, and the regret of each other method minus that of CBO-MW, seed by
seed. Runs that are in the folder are not repeated.

    python examples/reproduce_cbo_mw.py            # hours on one core, most of it MCBO's
    python examples/reproduce_cbo_mw.py --quick    # one seed, 3 rounds of two games, without MCBO
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl
from joblib import Parallel, delayed
from matplotlib.figure import Figure

import cbo_gym  # registers the environments, in worker processes too
from cbo_gym._util.files import replacing
from cbo_gym.agent_registry.finding import create_agent
from cbo_gym.agents import Random
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.report.palette import line_styles
from cbo_gym.evaluation.report.plots import mean_curve, publication_style, round_axis, save, shared_legend

GAMES = [f"{name}-{form}" for name in ("Dropwave", "Alpine2", "Rosenbrock", "Ackley") for form in ("Penny", "Perturb")]
AGENTS = ("CBO-MW", "GP-MW", "MCBO", "GP-UCB", "Random")
STYLES = line_styles(AGENTS)
# Share of the adversary's moves that are random.
JITTER = 0.2
ADVERSARIES = {"informed": "the paper's, which knows the mixed strategy", "adaptive": "one that sees past play"}

# Game and agent -> average regret, with a row for each seed.
Curves = dict[tuple[str, str], np.ndarray]


class Watched:
    """Agent that reveals its mixed strategy of the round once it has chosen."""

    def __init__(self, name: str) -> None:
        self.agent = create_agent(name)
        self.modes = self.agent.modes

    def reset(self, task: Any, seed: int) -> None:
        self.agent.reset(task, seed)

    def act(self, observation: Any) -> Any:
        # Read before the agent acts, so that the adversary sees the distribution of the action, not the action.
        self.weights = getattr(self.agent, "weights", None)
        self.action = self.agent.act(observation)
        return self.action

    def update(self, *played: Any) -> None:
        self.agent.update(*played)

    def recommend(self) -> Any:
        return self.agent.recommend()

    def mixture(self, game: Any) -> np.ndarray:
        """Return the probabilities of the game's actions, ``(n,)``."""
        count = len(game.rewards)
        if isinstance(self.agent, Random):
            return np.full(count, 1.0 / count)
        return np.eye(count)[game.index_of(self.action.tolist())] if self.weights is None else self.weights


class Informed:
    """The paper's adversary: the best reply to an agent's mixed strategy, or with some probability a random move."""

    def __init__(self, agent: Watched, game: Any, seed: int) -> None:
        self.agent, self.game, self.rng = agent, game, np.random.default_rng(seed)

    def __call__(self, past: np.ndarray) -> np.ndarray:
        if self.rng.random() < JITTER:
            return self.rng.choice(self.game.moves)
        return self.game.moves[(self.agent.mixture(self.game) @ self.game.rewards).argmin()]

    def __repr__(self) -> str:
        return "informed"


def regrets(name: str, game: str, adversary: str, seed: int, rounds: int) -> np.ndarray:
    """Return the average regret after each round, relative to the best fixed action in hindsight, ``(rounds,)``."""
    env, agent = f"CBO/{game}-v0", Watched(name)
    opponent: Any = adversary
    if adversary == "informed":
        opponent = Informed(agent, gym.make(env).unwrapped.dynamics.game, seed)
    run = cbo_gym.evaluate(agent, env, seed, horizon=rounds, recommend="end", label=name, adversary=opponent)
    return run.table["average_regret"].to_numpy()


def load_or_play(path: Path, *arguments: Any) -> np.ndarray:
    if not path.exists():
        curve = regrets(*arguments)
        with replacing(path) as temporary:
            np.save(temporary, curve)
    return np.load(path)


def play(
    folder: Path, agents: Sequence[str], games: Sequence[str], adversary: str, seeds: int, rounds: int, jobs: int
) -> Curves:
    # One seed after the other, so that a reproduction that was stopped has the same seeds of every game.
    cells = [(agent, game, adversary, seed, rounds) for seed in range(seeds) for game in games for agent in agents]
    paths = [folder / "runs" / ("-".join(map(str, cell)) + ".npy") for cell in cells]
    calls = (delayed(load_or_play)(path, *cell) for path, cell in zip(paths, cells, strict=True))
    runs_played = Parallel(n_jobs=jobs, verbose=1)(calls)
    curves: dict[tuple[str, str], list[np.ndarray]] = {}
    for (agent, game, *_), curve in zip(cells, runs_played, strict=True):
        curves.setdefault((game, agent), []).append(curve)
    return {key: np.stack(rows) for key, rows in curves.items()}


def table_of(curves: Curves, adversary: str) -> pl.DataFrame:
    """Return the last average regret of each game and agent, and its difference from CBO-MW's in paired seeds."""
    rows = []
    for (game, agent), values in curves.items():
        last, less = values[:, -1], curves[game, AGENTS[0]][:, -1] - values[:, -1]
        row = {"adversary": adversary, "game": game, "agent": agent, "seeds": len(last)}
        row |= {"average_regret": last.mean(), "half_width": float(half_width(last))}
        rows.append(row | {"cbo_mw_less_it": less.mean(), "less_half_width": float(half_width(less))})
    return pl.DataFrame(rows)


@publication_style
def draw(curves: Curves, games: Sequence[str], agents: Sequence[str]) -> Figure:
    """Draw a panel for each game: the mean average regret of every agent, with its interval."""
    columns = min(4, len(games))
    figure = Figure(figsize=(2.0 * columns + 0.4, 2.1 * -(-len(games) // columns) + 0.4), layout="constrained")
    axes = figure.subplots(-(-len(games) // columns), columns, squeeze=False)
    for axis, game in zip(axes.flat, games, strict=True):
        for agent in agents:
            mean_curve(axis, curves[game, agent], agent, STYLES[agent])
        axis.set_title(game)
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
        round_axis(axis)
    figure.supylabel("Average regret", fontsize=8)
    shared_legend(figure)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="one seed, 3 rounds of two games, without MCBO: to see that all works"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/cbo_mw"), help="folder of runs, figures and table")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, counted from 0")
    parser.add_argument("--rounds", type=int, default=100, help="rounds of a run")
    parser.add_argument("--agents", nargs="+", help=f"from {', '.join(AGENTS)}, all by default; CBO-MW always plays")
    parser.add_argument(
        "--adversaries", nargs="+", default=list(ADVERSARIES), choices=ADVERSARIES, help="whom they meet"
    )
    parser.add_argument("--jobs", type=int, default=-1, help="processes at a time; -1 for one a core")
    options = parser.parse_args()
    games, seeds, rounds, jobs = GAMES, options.seeds, options.rounds, options.jobs
    asked = options.agents or (set(AGENTS) - {"MCBO"} if options.quick else AGENTS)
    agents = [name for name in AGENTS if name == AGENTS[0] or name in asked]
    if options.quick:
        games, seeds, rounds, jobs = GAMES[:2], 1, 3, 1
    tables = []
    for adversary in options.adversaries:
        curves = play(options.out, agents, games, adversary, seeds, rounds, jobs)
        save(draw(curves, games, agents), options.out, f"average_regret_{adversary}")
        tables.append(table_of(curves, adversary))
    table = pl.concat(tables)
    table.write_csv(options.out / "average_regret.csv")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=3, tbl_width_chars=140):
        print(table)
    print(f"Figures and average_regret.csv are in {options.out}")


if __name__ == "__main__":
    main()
