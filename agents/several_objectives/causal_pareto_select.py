"""Causal ParetoSelect (Bhatija, Zuercher, Thumm & Bohné 2025, Algorithm 1).

Each target set that can be Pareto-optimal on the diagram is a *local problem*, with a GP from its values to each
objective. A search finds the Pareto set of the posterior means. From it, a batch is picked greedily by the gain in the
hypervolume of the local front. The method plays the batch of the local problem with the greatest relative gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.arguments import whole_number
from cbo_gym._util.fronts import hypervolume, non_dominated, search_pareto_set
from cbo_gym.agent import LeaveOneOut
from cbo_gym.agents.calibration.data_noise import is_noiseless
from cbo_gym.agents.calibration.forecast import leave_one_out, sample_each
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.several_objectives.base import SeveralObjectivesAgent, sets_worth_setting
from cbo_gym.task import Action, HardTask, Info, Observation

# Number of random rounds on each set before batches are planned.
FIRST_ROUNDS = 5
# Sizes of the search for a Pareto set.
GENERATIONS, CHILDREN, ARCHIVE = 60, 128, 120


@dataclass
class _Local:
    """The local problem of one target set."""

    # Columns of the set's variables among the features.
    members: list[int]
    # Objective -> GP.
    surrogates: dict[str, GaussianProcess]
    # Elementwise minimum of the first rewards.
    worst: np.ndarray | float = np.inf

    def gp_inputs(self, features: Tensor) -> Tensor:
        """Return the GPs' inputs from features ``... x d``: the set's values, or a constant if it is empty."""
        return features[..., self.members] if self.members else torch.zeros_like(features[..., :1])

    @property
    def played_inputs(self) -> Tensor:
        """The GPs' inputs in the rounds in which the set was played."""
        return next(iter(self.surrogates.values())).inputs


class CausalParetoSelect(SeveralObjectivesAgent):
    """Causal ParetoSelect. Plays hard tasks with several objectives, and soft ones as one problem.

    Args:
        batch: number of rounds that are planned together, 1 to 100 (5 as in the published program).

    Attributes:
        sets: the target sets that are explored; in soft mode one set of all coordinates.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    def __init__(self, batch: int = 5) -> None:
        self.batch = whole_number("batch", batch, at_least=1, at_most=100)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._planned: list[Tensor] = []
        if isinstance(self.task, HardTask):
            self.sets, names = sets_worth_setting(self.task), list(self.task.manipulable)
            self.features = features_of(self.task, self.sets)
        else:
            names = list(self.task.action_names)
            self.sets, self.features = [frozenset(names)], features_of(self.task)
        self._names = names
        noise = {name: 0.0 if is_noiseless(self.task, name) else None for name in self.observed}
        self._locals = {
            target: _Local(
                [column for column, name in enumerate(names) if name in target],
                {name: GaussianProcess(name, max(1, len(target)), noise_std=std) for name, std in noise.items()},
            )
            for target in self.sets
        }

    def update(self, action: Action, observation: Observation, reward: np.ndarray, info: Info) -> None:
        super().update(action, observation, reward, info)
        if (local := self._local_of(action)) is None:
            return
        points = local.gp_inputs(self.features.of_actions([action]))
        for name, value in self.objective_values(observation).items():
            local.surrogates[name].add(points, value)
        if len(local.played_inputs) <= FIRST_ROUNDS:
            local.worst = np.minimum(local.worst, reward)

    def _local_of(self, action: Action) -> _Local | None:
        """Return the local problem of an action; ``None`` if its set is not explored."""
        target = self.task.targets[int(action["target"])] if isinstance(self.task, HardTask) else self.sets[0]
        return self._locals.get(target)

    def search(self, seed: int) -> Action:
        if not self._planned:
            self._planned = self._plan(np.random.default_rng(seed))
        return self.features.decode(self._planned.pop(0))

    def _plan(self, rng: np.random.Generator) -> list[Tensor]:
        """Return the batch of the local problem with the greatest relative gain, as search points."""
        rarest = min(self._locals.values(), key=lambda local: len(local.played_inputs))
        if len(rarest.played_inputs) < (FIRST_ROUNDS if rarest.members else 1):
            return [self._point(rarest, rng.random(len(rarest.members)))]
        proposals = [(local, *self._propose(local, rng)) for local in self._locals.values()]
        best, _, batch = max(proposals, key=lambda proposal: proposal[1])
        return [self._point(best, values) for values in batch]

    def _propose(self, local: _Local, rng: np.random.Generator) -> tuple[float, list[np.ndarray]]:
        """Return the predicted relative gain of the local hypervolume by a batch, and the batch as values."""
        dim = len(local.members)
        estimates = self._estimates(local)
        front = estimates[non_dominated(estimates)]
        reference = np.minimum(local.worst, front.min(axis=0))
        pareto_set = search_pareto_set(
            [lambda values: self._mean(local, values)],
            [range(dim)],
            rng,
            generations=GENERATIONS,
            children=CHILDREN,
            size=ARCHIVE,
        )
        initial = volume = hypervolume(front, reference)
        batch: list[np.ndarray] = []
        remaining = np.arange(len(pareto_set.box))
        while len(remaining) and len(batch) < self.batch:
            volumes = [hypervolume(np.vstack([front, pareto_set.vectors[row]]), reference) for row in remaining]
            best = int(np.argmax(volumes))
            front, volume = np.vstack([front, pareto_set.vectors[remaining[best]]]), volumes[best]
            batch.append(pareto_set.points[remaining[best], :dim])
            remaining = np.delete(remaining, best)
        gain = volume - initial
        if initial > 0.0:
            return gain / initial, batch
        return (np.inf if gain > 0.0 else 0.0), batch

    def _mean(self, local: _Local, values: np.ndarray) -> np.ndarray:
        """Return posterior mean rewards ``(n, m)`` if a set's variables are set to ``values``, ``(n, dim)``."""
        gp_inputs = features = torch.from_numpy(values)
        # Features are needed only for the cost of an action.
        if self._has_cost:
            features = self.features.inputs(torch.stack([self._point(local, row) for row in values]))
        if not local.members:
            gp_inputs = gp_inputs.new_zeros(len(gp_inputs), 1)
        with torch.no_grad():
            means = torch.stack([surrogate.mean(gp_inputs) for surrogate in local.surrogates.values()], -1)
            return self.rewards_of(means, features).numpy()

    def _estimates(self, local: _Local) -> np.ndarray:
        """Return posterior means of the rewards of the rounds in which a set was played, ``(n, m)``."""
        return self._mean(local, local.played_inputs[:, : len(local.members)].numpy())

    def _point(self, local: _Local, values: np.ndarray) -> Tensor:
        """Return the search point that sets a set's variables to ``values``."""
        point = torch.full((self.features.search_dim,), 0.5, dtype=torch.float64)
        point[local.members] = torch.from_numpy(np.asarray(values, dtype=float))
        if isinstance(self.task, HardTask):
            membership = point[len(self._names) :]
            membership[:] = 0.0
            membership[local.members] = 1.0
        return point

    def posterior(self, actions: Sequence[Action]) -> tuple[Tensor, Tensor] | None:
        means, stds = [], []
        for action in actions:
            local = self._local_of(action)
            if local is None or not len(local.played_inputs):
                return None
            point = local.gp_inputs(self.features.of_actions([action]))
            mean, std = zip(*[surrogate.posterior(point) for surrogate in local.surrogates.values()], strict=True)
            means.append(torch.cat(mean))
            stds.append(torch.cat(std))
        return torch.stack(means), torch.stack(stds)

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray]:
        inputs = self.features.of_actions(actions)
        draws = {name: np.full((count, len(actions)), np.nan) for name in self.observed}
        for index, local in enumerate(self._locals.values()):
            columns = [column for column, action in enumerate(actions) if self._local_of(action) is local]
            if columns and len(local.played_inputs):
                points = local.gp_inputs(inputs[columns])
                local_draws = sample_each(local.surrogates, points, count, seed + index, noise) or {}
                for name, values in local_draws.items():
                    draws[name][:, columns] = values
        return draws

    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        """Return predictions from the other rounds on the same set; rounds on sets not explored are left out."""
        played = [local for local in self._locals.values() if len(local.played_inputs)]
        predictions = [leave_one_out(local.surrogates) for local in played]
        return {name: LeaveOneOut.join([of_set[name] for of_set in predictions]) for name in self.observed if played}

    def estimated_rewards(self) -> np.ndarray:
        """Return posterior means by the sets' models; for actions on other sets, the observed rewards."""
        rewards = np.array([past.reward for past in self.history])
        for local in self._locals.values():
            rows = [row for row, past in enumerate(self.history) if self._local_of(past.action) is local]
            if rows:
                rewards[rows] = self._estimates(local)
        return rewards
