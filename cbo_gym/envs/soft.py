"""Soft mode: the action is the vector of the mechanisms' parameters."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from cbo_gym.envs.base import CausalBanditEnv, Region, as_numbers
from cbo_gym.envs.spaces import SparseBox
from cbo_gym.problems import Problem
from cbo_gym.scm import Intervention
from cbo_gym.task import Mode


class SoftEnv(CausalBanditEnv):
    """Causal bandit with soft interventions.

    ## Action space
    ``Box(0, 1, (q,))``: the parameters of the mechanisms, mapped to native units by the problem. With
    ``max_interventions`` = c at most c of them may differ from the problem's null action.

    ## Observation space
    ``Dict(nodes=Box(n))``: the observed variables in topological order, the reward last; zeros at reset.

    ## Reward
    The value of the reward variable in this round.

    ## Episode end
    Never terminated; truncated after the registered number of rounds.

    ## Arguments
    ``problem``, ``oracle``, ``render_mode`` and the problem's own parameters, see :class:`CausalBanditEnv`;
    ``max_interventions``: the cardinality limit c, 1 to q, or None.

    ## References
    Function networks: Astudillo & Frazier (2021). Soft interventions: Sussex et al. (2023), sec. 2.
    """

    mode = Mode.SOFT

    def __init__(
        self,
        problem: str | Problem,
        *,
        max_interventions: int | None = None,
        oracle: bool = False,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        self.max_interventions = max_interventions
        super().__init__(problem, oracle=oracle, render_mode=render_mode, **parameters)
        self._action_dim = self.scm.action_dim
        self._null = [float(a) for a in self.problem.null_action]
        self._scales = [(low, high - low) for low, high in self.problem.action_domains]
        self._action_nodes = self.scm.action_nodes
        self._own_actions = [(name, itemgetter(*own)) for name, own in self._action_nodes.items()]

    def build_action_space(self) -> spaces.Space[Any]:
        q = self.scm.action_dim
        if q == 0:
            raise ValueError(f"{self.problem.name} has no soft parameters, so no soft mode")
        if self.max_interventions is None:
            return spaces.Box(0.0, 1.0, (q,), dtype=np.float64)
        return SparseBox(self.problem.null_action, self.max_interventions)

    def decode(self, action: Any) -> Intervention:
        array = as_numbers(action)
        if array.shape != (self._action_dim,):
            raise InvalidAction(f"the action must have shape ({self._action_dim},); given shape {array.shape}")
        # Plain floats: on so few numbers they are several times faster than array operations.
        point = array.tolist()
        for value in point:
            if not 0.0 <= value <= 1.0:
                raise InvalidAction(f"action[{point.index(value)}] must lie in [0, 1]; given {value}")
        limit = self.max_interventions
        if limit is not None:
            changed = sum(value != null for value, null in zip(point, self._null, strict=True))
            if changed > limit:
                raise InvalidAction(
                    f"at most {limit} coordinates may differ from the null action {self._null}; given {changed}"
                )
        return self._to_native(point)

    def decode_batch(self, actions: Any) -> Intervention:
        array = as_numbers(actions)
        if array.ndim != 2 or array.shape[1] != self._action_dim:
            raise InvalidAction(f"the actions must have shape (n, {self._action_dim}); given {array.shape}")
        inside = ((array >= 0.0) & (array <= 1.0)).all(axis=1)
        if self.max_interventions is not None:
            inside &= (array != self._null).sum(axis=1) <= self.max_interventions
        if not inside.all():
            first = int(np.argmin(inside))
            raise InvalidAction(f"actions[{first}] is outside {self.action_space}; given {array[first]}")
        return self._to_native(array.T)

    def _to_native(self, columns: Any) -> Intervention:
        return Intervention([low + span * column for (low, span), column in zip(self._scales, columns, strict=True)])

    def describe(self, intervention: Intervention) -> dict[str, Any]:
        return {name: own(intervention.soft) for name, own in self._own_actions}

    def describe_batch(self, intervention: Intervention) -> dict[str, Any]:
        described: dict[str, Any] = {}
        for name, own in self.describe(intervention).items():
            described[name] = np.stack(own, axis=-1) if isinstance(own, tuple) else own
            described[f"_{name}"] = np.ones(len(described[name]), dtype=bool)
        return described

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Any:
        count = 2 * self.scm.action_dim + 1 if random is None else random
        points = rng.random((count, self.scm.action_dim))
        if isinstance(self.action_space, SparseBox):
            chosen = rng.random(points.shape).argsort(axis=-1) < self.action_space.max_interventions
            points = np.where(chosen, points, self._null)
        return np.concatenate([np.tile(self._null, (observational, 1)), points])

    def regions(self) -> list[Region]:
        space = self.action_space
        return [Region(self._action_dim, space.keep_largest if isinstance(space, SparseBox) else np.asarray)]

    def known_maximiser(self) -> Any:
        best = self.problem.optimal_action
        return None if best is None or self.max_interventions else np.array(best, dtype=np.float64)

    def record_action(self, action: Any) -> list[float]:
        return [float(value) for value in action]

    def restore_action(self, recorded: list[float]) -> np.ndarray:
        return np.array(recorded, dtype=np.float64)

    def task_fields(self) -> dict[str, Any]:
        return {
            "action_nodes": dict(self._action_nodes),
            "action_domains": tuple(self.problem.action_domains),
            "null_action": tuple(self.problem.null_action),
            "max_interventions": self.max_interventions,
            "composition": self.problem.composition,
        }
