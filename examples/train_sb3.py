"""Train Stable-Baselines3 on the natively vectorised environments, here DQN on Dropwave.

Dropwave's ripples are as narrow as a twentieth of the action range. DQN chooses among actions that are spread over the
whole range, and finds the rings at the centre. PPO and SAC follow a gradient, so their result depends on their start.
"""

import argparse

import gymnasium as gym
import numpy as np
from stable_baselines3 import DQN, PPO, SAC

from cbo_gym.envs import oracle_of
from cbo_gym.integrations.sb3 import VecEnv

ALGORITHMS = {
    "DQN": (DQN, {"learning_starts": 2_000, "train_freq": 1, "exploration_fraction": 0.5, "learning_rate": 1e-3}),
    "PPO": (PPO, {"n_steps": 32, "batch_size": 512, "learning_rate": 1e-3}),
    "SAC": (SAC, {"learning_starts": 500}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed and a tenth of the rounds")
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="DQN")
    parser.add_argument("--env", default="CBO/Dropwave-v0", help="environment id, of any feedback mode")
    parser.add_argument("--rounds", type=int, default=60_000, help="rounds in all, over all experiments")
    parser.add_argument("--experiments", type=int, default=32, help="experiments stepped together")
    arguments = parser.parse_args()

    build, parameters = ALGORITHMS[arguments.algorithm]
    oracle = oracle_of(gym.make(arguments.env))
    best, at_random = oracle.optimum.value, oracle.optimum.random_value
    print(f"{arguments.env}: optimum {best:.4g}, random action {at_random:.4g}")
    for seed in range(1 if arguments.quick else 3):
        train = VecEnv(
            arguments.env,
            arguments.experiments,
            discrete=1024 if arguments.algorithm == "DQN" else None,
            seed=seed,
        )
        # Rounds are independent of each other, so gamma is 0.
        model = build("MultiInputPolicy", train, gamma=0.0, seed=seed, **parameters)
        model.learn(arguments.rounds // (10 if arguments.quick else 1), progress_bar=False)
        choices, _ = model.predict(train.reset(), deterministic=True)
        expected = oracle.expected_rewards([train.to_action(choice) for choice in choices]).value
        print(f"{arguments.algorithm}, seed {seed}: expected reward {np.mean(expected):.4g} = "
              f"{np.mean(expected) / best:.1%} of the optimum")  # fmt: skip


if __name__ == "__main__":
    main()
