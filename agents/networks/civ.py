"""CIV: shifts that bring the means of a linear system to a target (Zhang, Cammarata, Squires, Sapsis & Uhler 2023).

In X = B X + a + noise the row of B of each node has a normal posterior, from Bayesian linear regression on the node's
parents. The optimum is a* = (I - B) target, so shifts are chosen by how uncertain they leave the squared distance
``|a - a*|^2`` of all shifts a of a given length: the causal integrated variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy.optimize import Bounds, minimize

from cbo_gym._util.arguments import require_positive, require_word
from cbo_gym.agent import Agent, UnsupportedModeError
from cbo_gym.task import Action, Info, Mode, Observation, SoftTask

# Range of random factors of the last action, which starts one of the two searches.
JITTER = (0.8, 1.2)
# Relative error up to which the known reward must be the squared distance from a target.
QUADRATIC = 1e-6


class LinearPosterior:
    """Normal posteriors of the rows of B, with the prior N(0, noise variance) for each weight.

    Args:
        parents: for each node the indices of its parents.
        variances: variances of the nodes' noise.

    Attributes:
        mean: posterior mean of B, ``p x p``.
        spread: posterior covariances of the rows, divided by the noise variance, ``p x p x p``.
    """

    def __init__(self, parents: list[list[int]], variances: np.ndarray) -> None:
        self.variances = variances
        count = len(parents)
        self._is_parent = np.zeros((count, count), dtype=bool)
        for node, own in enumerate(parents):
            self._is_parent[node, own] = True
        self.mean = np.zeros((count, count))
        self.spread = np.array([np.diag(own.astype(float)) for own in self._is_parent])

    def learn(self, shift: np.ndarray, values: np.ndarray) -> None:
        """Add a round, by updates of rank one."""
        rows = values * self._is_parent
        gains = np.einsum("ijk,ik->ij", self.spread, rows)
        scales = 1.0 + np.einsum("ij,ij->i", gains, rows)
        errors = values - shift - np.einsum("ij,ij->i", self.mean, rows)
        self.mean = self.mean + gains * (errors / scales)[:, None]
        self.spread = self.spread - gains[:, :, None] * gains[:, None, :] / scales[:, None, None]

    def means(self, shift: np.ndarray) -> np.ndarray:
        """Return E[X | shift] of the mean of B."""
        return np.linalg.solve(np.eye(len(self.mean)) - self.mean, shift)


class CIV(Agent):
    """Causal integrated variance. Plays soft tasks whose known reward is the squared distance from a target.

    Each node has one parameter, a shift that is added to it. The recommendation is the posterior mean of a*, played or
    not.

    Args:
        acquisition: ``"civ"``; ``"greedy"`` for the posterior mean of a*; ``"random"`` for random directions.
        length: largest Euclidean length of a shift, in native units, above 0.

    Attributes:
        target: the target means of the nodes.
        posterior: the posterior of B.

    Raises:
        UnsupportedModeError: from ``reset``, if the task is no such task.
    """

    modes = frozenset({Mode.SOFT})
    task: SoftTask

    def __init__(self, acquisition: str = "civ", length: float = 1.0) -> None:
        self.acquisition = require_word("acquisition", acquisition, ("civ", "greedy", "random"))
        self.length = require_positive("length", length)

    def setup(self, seed: int) -> None:
        task, diagram = self.task, self.task.diagram
        names = [name for name in task.nodes if name != task.reward]
        crowded = [name for name in names if len(task.action_nodes.get(name, ())) != 1]
        if crowded or task.noise is None or diagram.bidirected or task.reward in task.action_nodes:
            raise UnsupportedModeError(
                f"CIV plays linear systems with known noise, no latent causes, and one shift of each node; "
                f"{task.env_id} is not one; choose MCBO, EIFN or GP-UCB"
            )
        self.target = self._read_target(names)
        self._columns = [task.nodes.index(name) for name in names]
        self._coordinates = [task.action_nodes[name][0] for name in names]
        domains = [task.action_domains[coordinate] for coordinate in self._coordinates]
        self._low, self._high = (np.array(side) for side in zip(*domains, strict=True))
        parents = [[names.index(parent) for parent in diagram.parents(name)] for name in names]
        self._offsets = np.array([task.noise[name].mean for name in names])
        self.posterior = LinearPosterior(parents, np.array([task.noise[name].std ** 2 for name in names]))

    def _read_target(self, names: list[str]) -> np.ndarray:
        """Return the target of the known reward, from its values at 0 and at the unit vectors."""
        reward = self.task.composition
        if reward is None:
            raise UnsupportedModeError(
                f"CIV needs to know the reward, and {self.task.env_id} has no known composition; choose MCBO or EIFN"
            )

        def value(point: np.ndarray) -> float:
            return float(reward(dict(zip(names, point.tolist(), strict=True))))

        centre, units = value(np.zeros(len(names))), np.eye(len(names))
        target = np.array([(value(unit) - value(-unit)) / 4.0 for unit in units])
        point = np.arange(1.0, len(names) + 1.0)
        loss, expected = centre - value(point), np.square(point - target).sum() - np.square(target).sum()
        if abs(loss - expected) > QUADRATIC * np.square(point).sum():
            raise UnsupportedModeError(
                f"CIV minimises the squared distance from a target, and the reward of {self.task.env_id} is another; "
                "choose MCBO or EIFN"
            )
        return target

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        values = np.asarray(observation["nodes"], dtype=float)[self._columns]
        self.posterior.learn(self._shift(action) + self._offsets, values)

    def act(self, observation: Observation) -> Action:
        best = self.posterior_optimum()
        if self.acquisition == "random":
            direction = self.rng.uniform(-1.0, 1.0, len(best))
            return self._action(self.length * direction / np.linalg.norm(direction))
        if self.acquisition == "greedy":
            return self._action(self._inside(best))
        last = self._shift(self.history[-1].action) if self.history else self.rng.uniform(-1.0, 1.0, len(best))
        starts = [last * self.rng.uniform(*JITTER, len(best)), best]
        loss = self.integrated_variance()
        found = [self._minimise(loss, self._inside(start)) for start in starts]
        return self._action(min(found, key=loss))

    def integrated_variance(self) -> Callable[[np.ndarray], float]:
        """Return the variance of ``|a - a*|^2`` after a round with a shift, integrated over a, as a function of it.

        It is a sum over nodes, with d_i the variance of a*_i after the round, of ``d_i (d_i + 2 c_i)``. Here c_i is the
        mean of (a_i - E a*_i)^2 over shifts of length 1 plus the noise variance.
        """
        count, posterior = len(self.target), self.posterior
        inverse = np.linalg.inv(np.eye(count) - posterior.mean)
        along = posterior.spread @ inverse
        return partial(
            _integrated_variance,
            2.0 * (posterior.variances + np.square(self.posterior_optimum()) + 1.0 / count),
            posterior.variances,
            np.einsum("j,ijk,k->i", self.target, posterior.spread, self.target),
            self.target @ along,
            inverse.T @ along,
            self._offsets,
        )

    def posterior_optimum(self) -> np.ndarray:
        """Return the posterior mean of a*, in native units."""
        return self.target - self.posterior.mean @ self.target - self._offsets

    def _minimise(self, loss: Callable[[np.ndarray], float], start: np.ndarray) -> np.ndarray:
        inside = {"type": "ineq", "fun": lambda a: self.length**2 - a @ a, "jac": lambda a: -2.0 * a}
        found = minimize(loss, start, method="SLSQP", bounds=Bounds(self._low, self._high), constraints=inside)
        return self._inside(found.x)

    def _inside(self, shift: np.ndarray) -> np.ndarray:
        """Return the shift, shortened to the greatest length and clipped to the domains."""
        norm = float(np.linalg.norm(shift))
        return np.clip(shift * (self.length / norm) if norm > self.length else shift, self._low, self._high)

    def _shift(self, action: Action) -> np.ndarray:
        return np.asarray(self.task.codec.domains.points_to_native(np.asarray(action)))[self._coordinates]

    def _action(self, shift: np.ndarray) -> Action:
        action = np.zeros(len(shift))
        action[self._coordinates] = (shift - self._low) / (self._high - self._low)
        return action.clip(0.0, 1.0)

    def recommend(self) -> Action:
        """Return the posterior mean of a*, as far as the length and the domains allow."""
        return self._action(self._inside(self.posterior_optimum()))

    def estimated_rewards(self) -> np.ndarray:
        shifts = [self._shift(past.action) + self._offsets for past in self.history]
        return -np.array([np.square(self.posterior.means(shift) - self.target).sum() for shift in shifts])

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        means = self.posterior.means(self._shift(action) + self._offsets)
        return {self.task.nodes[column]: float(value) for column, value in zip(self._columns, means, strict=True)}


def _integrated_variance(
    twice_c: np.ndarray,
    variances: np.ndarray,
    before: np.ndarray,
    along: np.ndarray,
    across: np.ndarray,
    offsets: np.ndarray,
    shift: np.ndarray,
) -> float:
    """Return the sum of ``d_i (d_i + 2 c_i)``; ``variances * before`` are the d_i before the round with the shift."""
    a = shift + offsets
    left = variances * (before - np.square(along @ a) / (1.0 + np.einsum("j,ijk,k->i", a, across, a)))
    return float(left @ (left + twice_c))
