"""A method of your own on the leaderboard: a hill climber against random search, in a few lines."""

import argparse
from pathlib import Path

from cbo_gym import Agent, Mode, leaderboard, sweep


class KeepBest(Agent):
    """Agent that jumps around the best action so far.

    Args:
        step: standard deviation of a jump, in units of the action box.
    """

    modes = frozenset({Mode.SOFT})

    def __init__(self, step: float = 0.1) -> None:
        self.step = step

    def act(self, observation):
        jump = self.step * self.rng.standard_normal(self.task.action_space.shape)
        return (self.recommend() + jump).clip(0.0, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one environment, one seed and 20 rounds")
    parser.add_argument("--out", type=Path, default=Path("runs/custom_agent"), help="folder of the runs")
    arguments = parser.parse_args()

    count = sweep(
        # An agent is named by its import path, so that worker processes find it: here, this file.
        agents=["Random", "custom_agent:KeepBest", "custom_agent:KeepBest(step=0.02)"],
        envs=["CBO/Alpine2-v0"] if arguments.quick else ["CBO/Alpine2-v0", "CBO/Rosenbrock-v0"],
        seeds=range(1 if arguments.quick else 10),
        folder=arguments.out,
        horizon=20 if arguments.quick else 100,
    )
    print(count)
    for row in leaderboard(arguments.out).per_env.iter_rows(named=True):
        print(f"{row['env']:28} {row['agent']:34} simple regret {row['simple_regret']:8.2f}, score {row['score']:.3f}")


if __name__ == "__main__":
    main()
