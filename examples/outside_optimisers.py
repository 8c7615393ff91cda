"""Optimisers of other libraries on the leaderboard: Optuna's samplers, and a BoTorch loop in ten lines."""

import argparse
from pathlib import Path

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from cbo_gym import leaderboard, sweep
from cbo_gym.agents import AskTell

ENVS = ["CBO/Rosenbrock-v0", "CBO/ToyGraph-v0", "CBO/Dropwave-Aggregated-v0"]


class BoTorchEI(AskTell):
    """The loop of BoTorch's tutorials: fit a new GP in each round, and maximise the log expected improvement."""

    def ask(self) -> np.ndarray:
        dim = self.points.shape[1]
        if len(self.points) < 2 * dim:
            return self.rng.random(dim)
        with torch.random.fork_rng():  # optimize_acqf draws its starting points from the global stream
            torch.manual_seed(int(self.rng.integers(2**31)))
            inputs, rewards = torch.as_tensor(self.points), torch.as_tensor(self.rewards)[:, None]
            model = SingleTaskGP(inputs, rewards)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            acquisition = LogExpectedImprovement(model, best_f=rewards.max())
            box = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, dim)
            point, _ = optimize_acqf(acquisition, box, q=1, num_restarts=4, raw_samples=64)
        return point[0].numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one seed, one environment and 6 rounds, to see that all works"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/outside_optimisers"), help="folder of the runs")
    arguments = parser.parse_args()

    print(
        sweep(
            # A user's class is named by its import path, so that worker processes find it: here, this file.
            agents=["Random", "Optuna(sampler='TPE')", "Optuna(sampler='CMA-ES')", "outside_optimisers:BoTorchEI"],
            envs=["CBO/ToyGraph-v0"] if arguments.quick else ENVS,
            seeds=range(1 if arguments.quick else 5),
            folder=arguments.out,
            horizon=6 if arguments.quick else 60,
            # Starting processes would take longer than a quick run.
            n_jobs=1 if arguments.quick else -1,
        )
    )
    for row in leaderboard(arguments.out).per_env.iter_rows(named=True):
        print(f"{row['env']:28} {row['agent']:30} simple regret {row['simple_regret']:8.2f}, score {row['score']:.3f}")


if __name__ == "__main__":
    main()
