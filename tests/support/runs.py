"""Made-up runs, with numbers that can be checked by hand."""

from dataclasses import replace

import numpy as np
import polars as pl

from cbo_gym.evaluation import Run


def made_up_run(agent, seed, rewards, env="CBO/Dropwave-v0", mode="soft", **more):
    """A run on an environment with optimum 1 and random value 0."""
    rewards = np.array(rewards, dtype=float)
    rounds = np.arange(1, len(rewards) + 1)
    table = pl.DataFrame(
        {
            "recommended_reward": rewards,
            "average_regret": np.cumsum(1 - rewards) / rounds,
            "simple_regret": 1 - rewards,
            "best_so_far_regret": np.minimum.accumulate(1 - rewards),
            "cumulative_regret": np.cumsum(1 - rewards),
            "average_reward": np.cumsum(rewards) / rounds,
            "act_seconds": np.full(len(rewards), 0.25),
            "update_seconds": np.full(len(rewards), 0.5),
            "recommend_seconds": np.full(len(rewards), 0.125),
        }
    )
    return Run(agent, env, seed, len(rewards), mode=mode, optimum=1.0, random_value=0.0, table=table, **more)


def choosing_run(agent, seed, chosen, names=("{X1 | C}", "{X2 | C}", "{}")):
    run = made_up_run(agent, seed, [0.5] * len(chosen), env="CBO/CoCaFig1-v0")
    return replace(run, choices=names, table=run.table.with_columns(pl.Series("choice", chosen)))
