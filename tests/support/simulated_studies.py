"""Studies of random systems, whose noise is a share of the scale of each variable, with the true expected rewards."""

from dataclasses import replace
from functools import cached_property

import gymnasium as gym
import numpy as np

from cbo_gym import custom_problem, make_task
from cbo_gym.envs import oracle_of
from cbo_gym.envs.registration import custom_id
from cbo_gym.study import create_study
from cbo_gym.study.forecast import DRAWS, leading_chances, sample
from cbo_gym.task import Mode
from tests.support.studies import describe_task


def system(mode, seed, share):
    """Return a random system; ``share`` is the standard deviation of each noise as a share of its variable's scale."""
    rng = np.random.default_rng(seed)
    slope, phase, weight = rng.uniform(0.5, 2.5, 4), rng.uniform(0.0, 6.0, 4), rng.uniform(0.5, 1.0, 3)

    def middle(x):
        return np.sin(slope[0] * x + phase[0]) + 0.3 * x

    def last(m, z):
        wave = weight[0] * np.cos(slope[1] * m + phase[1]) + weight[1] * np.sin(slope[2] * z + phase[2])
        return wave + weight[2] * np.cos(slope[3] * (m - z) + phase[3])

    x, z = rng.uniform(0.0, 2.0, (2, 4000))
    noise = {"m": share * middle(x).std(), "y": share * last(middle(x), z).std()}
    if mode == "soft":
        mechanisms = {"m": lambda a, u: middle(a) + u, "y": lambda m, b, u: last(m, b) + u}
        settings = {"actions": {"a": (0.0, 2.0), "b": (0.0, 2.0)}}
    else:
        mechanisms = {
            "x": lambda u: 1.0 + u,
            "z": lambda u: 1.0 + u,
            "m": lambda x, u: middle(x) + u,
            "y": lambda m, z, u: last(m, z) + u,
        }
        settings, noise = {"manipulable": {"x": (0.0, 2.0), "z": (0.0, 2.0)}}, noise | {"x": 0.4, "z": 0.4}
    return custom_problem(mechanisms, reward="y", noise=noise, **settings)


class Simulated:
    """A study of a random system, and the system.

    Args:
        folder: folder of the database.
        agent, mode: agent and mode of the study.
        seed: seed of the system, its noise and the agent.
        share: size of the noise, see :func:`system`.
        more: other fields of the study.
    """

    def __init__(self, folder, agent, mode, seed, share=0.3, **more):
        problem = replace(system(mode, seed, share), noise_known=False)
        self.env = gym.make(custom_id(Mode(mode)), problem=problem, max_episode_steps=1000)
        task = make_task(self.env, seed)
        self.env.reset(seed=seed)
        self.names, self.rng = task.nodes, np.random.default_rng(seed)
        path = folder / f"{agent}-{mode}-{seed}.db"
        self.study = create_study("s", storage=path, agent=agent, horizon=40, seed=seed, **describe_task(task), **more)

    def trial(self, share_of_own=0.0):
        """Ask for a trial, or register one at random."""
        if self.rng.random() >= share_of_own:
            return self.study.ask()
        units = self.study.units
        values = self.rng.random(len(units.codec.domains))
        chosen = (
            {"target": self.rng.integers(len(units.codec.choices)), "values": values} if units.codec.choices else values
        )
        return self.study.register(units.native_values(chosen))

    def tell(self, trial):
        """Play a trial, and record its outcome; return it."""
        observation, *_ = self.env.step(self.study.units.action(trial.do))
        values = dict(zip(self.names, np.asarray(observation["nodes"]).tolist(), strict=True))
        self.study.tell(trial, values)
        return values

    @cached_property
    def oracle(self):
        return oracle_of(self.env)

    def best_gap(self):
        """Return the true simple regret of the recommendation."""
        recommended = self.study.units.action(self.study.recommendation())
        return self.oracle.optimum.value - float(self.oracle.expected_rewards([recommended]).value[0])


def count_covered(simulated, rounds, begin, share_of_own=0.5):
    """Return, for each forecast of later trials, the variable and whether the outcome was in its interval."""
    covered = []
    for number in range(rounds):
        trial = simulated.trial(share_of_own)
        intervals = simulated.study.what_if(trial.do).outcomes if number >= begin else {}
        values = simulated.tell(trial)
        covered += [(name, low <= values[name] <= high) for name, (low, high) in intervals.items()]
    return covered


def statements(simulated, rounds, begin, every, deltas):
    """Return pairs of the stated probability that an action is better by delta, and whether such an action exists."""
    stated = []
    for number in range(1, rounds + 1):
        simulated.tell(simulated.trial(0.3))
        if number >= begin and (number - begin) % every == 0:
            gap = simulated.best_gap()
            stated += [(simulated.study.stopping(delta).probability, gap >= delta) for delta in deltas]
    return stated


def chances(simulated, rounds, begin):
    """Return pairs of the stated probability that a trial becomes the recommendation, and whether it did."""
    stated = []
    for number in range(1, rounds + 1):
        trial = simulated.trial(0.3)
        action, (_, agent, _) = simulated.study.units.action(trial.do), simulated.study.agent_snapshot()
        (chance,) = leading_chances(agent, [action], sample(agent, [action], DRAWS)) if number >= begin else (None,)
        simulated.tell(trial)
        if chance is not None:
            recommended = simulated.study.units.action(simulated.study.recommendation())
            points = [agent.task.codec.to_point(chosen) for chosen in (action, recommended)]
            stated.append((chance, np.allclose(*points, atol=1e-6)))
    return stated
