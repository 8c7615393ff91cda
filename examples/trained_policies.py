"""Train policies with Stable-Baselines3, save them, and play them as agents on other instances of their tasks.

Each policy learns on thousands of rounds of one system. Then it is compared with a method that learns from scratch, on
the system itself and on an instance of it, in which the optimum may be elsewhere. The scores show which policies also
work on the instance.
"""

import argparse
from pathlib import Path

from stable_baselines3 import DQN, PPO

from cbo_gym import leaderboard, sweep
from cbo_gym.integrations.sb3 import Policy, VecEnv

PPO_ARGUMENTS = {"gamma": 0.0, "n_steps": 8, "batch_size": 128, "learning_rate": 3e-3}
DQN_ARGUMENTS = {
    "gamma": 0.0, "learning_starts": 500, "train_freq": 1, "exploration_fraction": 0.5, "learning_rate": 1e-3
}  # fmt: skip
# Environment: algorithm, number of actions among which it chooses (None for a box), its arguments, training rounds.
TRAINING = {
    "CBO/PSAContextual2-v0": (PPO, None, PPO_ARGUMENTS, 50_000),
    "CBO/Rosenbrock-v0": (PPO, None, PPO_ARGUMENTS, 100_000),
    "CBO/Dropwave-v0": (DQN, 1024, DQN_ARGUMENTS, 60_000),
}


def trained_policy(env: str, folder: Path, share: float) -> Policy:
    """Return the policy of an environment, after a share of its training; from its file if it has one."""
    algorithm, actions, arguments, rounds = TRAINING[env]
    path = folder / f"{env.partition('/')[2]}.zip"
    if not path.exists():
        experiments = VecEnv(env, 32, discrete=actions, seed=100)
        model = algorithm("MultiInputPolicy", experiments, seed=100, **arguments)
        model.learn(int(rounds * share)).save(path)
    return Policy(algorithm.load(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the training, one seed and ten rounds")
    parser.add_argument("--out", type=Path, default=Path("runs/trained_policies"), help="folder of policies and runs")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    seeds = range(100, 101 if arguments.quick else 105)
    for env in TRAINING:
        policy = trained_policy(env, arguments.out, 0.01 if arguments.quick else 1.0)
        sweep(
            [policy, "Random", "GP-UCB" if env != "CBO/PSAContextual2-v0" else "CoCaBO"],
            [env, f"{env}(instance=300)"],
            seeds,
            arguments.out / "runs",
            horizon=10 if arguments.quick else 100,
            recommend="end",
        )
    board = leaderboard(arguments.out / "runs")
    for row in board.per_env.sort("env", "agent").iter_rows(named=True):
        print(f"{row['env']:45} {row['agent']:8} score of play {row['average_score']:6.2f}")


if __name__ == "__main__":
    main()
