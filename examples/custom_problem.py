"""An SCM of your own: from Python functions or a YAML file to an environment, its optimum and a leaderboard."""

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np

from cbo_gym import custom_problem, evaluate
from cbo_gym.envs import oracle_of
from cbo_gym.scm import CausalDiagram, Uniform

EQUATIONS = """\
name: Greenhouse
description: Light and heat make plants grow; watering costs money.
reward: profit
variables:
  light: {equation: u, noise: {Uniform: [0.5, 1.5]}}
  growth: {equation: "light * exp(-(heat - 22)**2 / 50) * tanh(water) + u", noise: 0.1}
  profit: 10 * growth - 0.06 * heat - water
actions: {heat: [10, 30], water: [0, 8]}
manipulable: {light: [0.5, 1.5], growth: [0, 1.5]}
"""


def greenhouse():
    """Return the same system from functions; the names of their arguments are the parents."""
    return custom_problem(
        {
            "light": lambda u: u,
            "growth": lambda light, heat, water, u: light * np.exp(-((heat - 22) ** 2) / 50) * np.tanh(water) + u,
            "profit": lambda growth, heat, water: 10 * growth - 0.06 * heat - water,
        },
        reward="profit",
        noise={"light": Uniform(0.5, 1.5), "growth": 0.1},
        diagram=CausalDiagram(["light", "growth", "profit"], [("light", "growth"), ("growth", "profit")]),
        actions={"heat": (10.0, 30.0), "water": (0.0, 8.0)},
        manipulable={"light": (0.5, 1.5), "growth": (0.0, 1.5)},
        name="Greenhouse",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 rounds instead of 50")
    parser.add_argument("--out", type=Path, default=Path("runs/custom_problem"), help="folder for the YAML file")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "greenhouse.yaml"
    path.write_text(EQUATIONS)

    for env_id, problem in [
        ("CBO/Custom-v0", greenhouse()),
        ("CBO/Custom-v0", str(path)),
        ("CBO/Custom-Hard-v0", str(path)),
    ]:
        env = gym.make(env_id, problem=problem)
        oracle = oracle_of(env)
        optimum = oracle.optimum
        print(f"{env_id}: optimum {optimum.value:.4g} +- {optimum.standard_error:.1g} "
              f"at {oracle.dynamics.codec.to_record(optimum.action)}")  # fmt: skip

    # A file is named in an environment's parameters, so that sweeps and the command line take it too:
    # cbo-gym show "CBO/Custom-v0(problem='greenhouse.yaml')"
    for agent in ("Random", "GP-UCB"):
        run = evaluate(agent, f"CBO/Custom-v0(problem={str(path)!r})", 0, horizon=10 if arguments.quick else 50)
        print(f"{agent}: average regret {run.table['average_regret'][-1]:.3g}")


if __name__ == "__main__":
    main()
