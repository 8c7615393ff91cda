"""CIV: shifts that bring the means of a linear system to a target (Zhang, Cammarata, Squires, Sapsis & Uhler 2023).

The system is ``X = B X + a + noise``; the action is the shift a. Bayesian linear regression on the parents of each node
gives a normal posterior of its row of B. The optimum is ``a* = (I - B) target - E[noise]``. The agent chooses the shift
after which the variance of ``|a - a*|^2``, integrated over all a of a given length, is least: the causal integrated
variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import Bounds, minimize

from cbo_gym._util.arguments import require_positive, require_word
from cbo_gym.agent import Agent, UnsupportedModeError
from cbo_gym.task import Action, Info, Mode, Observation, SoftTask

# Range of the random factors by which the last shift is multiplied to start one of the two searches.
JITTER = (0.8, 1.2)
# Relative error up to which the known reward must equal the squared distance from a target.
QUADRATIC_TOLERANCE = 1e-6


class LinearPosterior:
    """Normal posteriors of the rows of B, with the prior N(0, noise variance of the row's node) for each weight.

    Args:
        parents: indices of the parents of each of the p nodes.
        variances: variances of the nodes' noise, ``(p,)``.

    Attributes:
        mean: posterior mean of B, ``p x p``.
        spread: posterior covariances of the rows, divided by the noise variance, ``p x p x p``.
    """

    def __init__(self, parents: list[list[int]], variances: np.ndarray) -> None:
        self.variances = variances
        count = len(parents)
        self._is_parent = np.zeros((count, count), dtype=bool)
        for node, node_parents in enumerate(parents):
            self._is_parent[node, node_parents] = True
        self.mean = np.zeros((count, count))
        self.spread = np.array([np.diag(row.astype(float)) for row in self._is_parent])

    def learn(self, shift: np.ndarray, values: np.ndarray) -> None:
        """Add a round by updates of rank one: the shift, mean noise included, and the nodes' values, ``(p,)`` each."""
        rows = values * self._is_parent
        gains = np.einsum("ijk,ik->ij", self.spread, rows)
        scales = 1.0 + np.einsum("ij,ij->i", gains, rows)
        errors = values - shift - np.einsum("ij,ij->i", self.mean, rows)
        self.mean = self.mean + gains * (errors / scales)[:, None]
        self.spread = self.spread - gains[:, :, None] * gains[:, None, :] / scales[:, None, None]

    def means(self, shift: np.ndarray) -> np.ndarray:
        """Return E[X | shift] if B is its posterior mean; the shift includes the mean noise."""
        return np.linalg.solve(np.eye(len(self.mean)) - self.mean, shift)


class CIV(Agent):
    """Causal integrated variance. Plays soft tasks whose known reward is minus the squared distance from a target.

    The system must be linear, with one action parameter for each node, a shift that is added to the node. The
    recommendation is the posterior mean of a*, played or not.

    Args:
        acquisition: ``"civ"``; ``"greedy"`` for the posterior mean of a*; ``"random"`` for random directions.
        length: largest Euclidean length of a shift, in native units, above 0.

    Attributes:
        target: the target means of the nodes, ``(p,)``.
        posterior: the posterior of B.

    Raises:
        UnsupportedModeError: from ``reset``, if the task is not of this kind.
    """

    modes = frozenset({Mode.SOFT})
    task: SoftTask

    def __init__(self, acquisition: str = "civ", length: float = 1.0) -> None:
        self.acquisition = require_word("acquisition", acquisition, ("civ", "greedy", "random"))
        self.length = require_positive("length", length)

    def setup(self, seed: int) -> None:
        task, diagram = self.task, self.task.diagram
        names = [name for name in task.nodes if name != task.reward]
        has_shifts = all(len(task.action_nodes.get(name, ())) == 1 for name in names)
        if not has_shifts or task.noise is None or diagram.bidirected or task.reward in task.action_nodes:
            raise UnsupportedModeError(
                f"CIV plays linear systems with known noise, no latent causes, and one shift of each node; "
                f"{task.env_id} is not one; choose MCBO, EIFN or GP-UCB"
            )
        self.target = self._read_target(names)
        self._columns = [task.nodes.index(name) for name in names]
        self._coordinates = [task.action_nodes[name][0] for name in names]
        domains = [task.action_domains[coordinate] for coordinate in self._coordinates]
        self._low, self._high = (np.array(ends) for ends in zip(*domains, strict=True))
        parents = [[names.index(parent) for parent in diagram.parents(name)] for name in names]
        self._offsets = np.array([task.noise[name].mean for name in names])
        self.posterior = LinearPosterior(parents, np.array([task.noise[name].std ** 2 for name in names]))

    def _read_target(self, names: list[str]) -> np.ndarray:
        """Compute the target from values of the known reward at plus and minus the unit vectors."""
        reward = self.task.composition
        if reward is None:
            raise UnsupportedModeError(
                f"CIV needs to know the reward, and {self.task.env_id} has no known composition; choose MCBO or EIFN"
            )

        def value(point: np.ndarray) -> float:
            return float(reward(dict(zip(names, point.tolist(), strict=True))))

        target = np.array([(value(unit) - value(-unit)) / 4.0 for unit in np.eye(len(names))])
        # Compare differences between 0 and another point, because the reward may have an additional constant.
        point, origin = np.arange(1.0, len(names) + 1.0), np.zeros(len(names))
        difference = value(origin) - value(point)
        expected = np.square(point - target).sum() - np.square(target).sum()
        if abs(difference - expected) > QUADRATIC_TOLERANCE * np.square(point).sum():
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
        minima = [self._minimise(loss, self._inside(start)) for start in starts]
        return self._action(min(minima, key=loss))

    def integrated_variance(self) -> Callable[[np.ndarray], float]:
        """Return the function from the shift of the next round to the causal integrated variance after that round.

        It is the sum over nodes of ``d_i (d_i + 2 c_i)``, with d_i the variance of a*_i after the round, and c_i the
        noise variance plus the mean of ``(a_i - E a*_i)^2`` over shifts a of length 1.
        """
        count, posterior = len(self.target), self.posterior
        inverse = np.linalg.inv(np.eye(count) - posterior.mean)
        twice_c = 2.0 * (posterior.variances + np.square(self.posterior_optimum()) + 1.0 / count)
        # The d_i before the round are the noise variances times these.
        before = np.einsum("j,ijk,k->i", self.target, posterior.spread, self.target)
        spread_of_means = posterior.spread @ inverse
        along, across = self.target @ spread_of_means, inverse.T @ spread_of_means

        def integrated_variance(shift: np.ndarray) -> float:
            a = shift + self._offsets
            d = posterior.variances * (before - np.square(along @ a) / (1.0 + np.einsum("j,ijk,k->i", a, across, a)))
            return float(d @ (d + twice_c))

        return integrated_variance

    def posterior_optimum(self) -> np.ndarray:
        """Return the posterior mean of a*, in native units."""
        return self.target - self.posterior.mean @ self.target - self._offsets

    def _minimise(self, loss: Callable[[np.ndarray], float], start: np.ndarray) -> np.ndarray:
        length_limit = {"type": "ineq", "fun": lambda a: self.length**2 - a @ a, "jac": lambda a: -2.0 * a}
        bounds = Bounds(self._low, self._high)
        return self._inside(minimize(loss, start, method="SLSQP", bounds=bounds, constraints=length_limit).x)

    def _inside(self, shift: np.ndarray) -> np.ndarray:
        """Return the shift, shortened to the greatest length and clipped to the domains."""
        norm = float(np.linalg.norm(shift))
        shortened = shift * (self.length / norm) if norm > self.length else shift
        return np.clip(shortened, self._low, self._high)

    def _shift(self, action: Action) -> np.ndarray:
        return np.asarray(self.task.codec.domains.points_to_native(np.asarray(action)))[self._coordinates]

    def _action(self, shift: np.ndarray) -> Action:
        action = np.zeros(len(shift))
        action[self._coordinates] = (shift - self._low) / (self._high - self._low)
        return action.clip(0.0, 1.0)

    def recommend(self) -> Action:
        """Return the posterior mean of a*, moved into the greatest length and the domains."""
        return self._action(self._inside(self.posterior_optimum()))

    def estimated_rewards(self) -> np.ndarray:
        shifts = [self._shift(past.action) + self._offsets for past in self.history]
        return -np.array([np.square(self.posterior.means(shift) - self.target).sum() for shift in shifts])

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        means = self.posterior.means(self._shift(action) + self._offsets)
        return {self.task.nodes[column]: float(value) for column, value in zip(self._columns, means, strict=True)}
