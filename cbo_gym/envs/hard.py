"""Hard mode: the action picks a target set and the values that its variables are set to."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from cbo_gym.envs.base import CausalBanditEnv, Region
from cbo_gym.scm import Intervention
from cbo_gym.task import Mode


class HardEnv(CausalBanditEnv):
    """Causal bandit with hard interventions ``do(X_I = x_I)``.

    ## Action space
    ``Dict(target=Discrete(n_targets), values=Box(0, 1, (n_manipulable,)))``: the index of a target set (one is
    empty: observe only) and a value for every manipulable variable, mapped to native units by the problem. Values
    of variables outside the chosen set have no effect. Soft parameters, where the problem has any, stay at its null
    action.

    ## Observation space
    ``Dict(nodes=Box(n))``: the observed variables in topological order, the reward last; zeros at reset.

    ## Reward
    The value of the reward variable in this round.

    ## Episode end
    Never terminated; truncated after the registered number of rounds.

    ## Arguments
    ``problem``, ``oracle``, ``render_mode`` and the problem's own parameters, see :class:`CausalBanditEnv`.

    ## References
    Aglietti et al. (2020); Sussex et al. (2023), sec. 3, Algorithm 2.
    """

    mode = Mode.HARD

    def build_action_space(self) -> spaces.Space[Any]:
        if not self.problem.targets:
            raise ValueError(f"{self.problem.name} lists no target sets, so it has no hard mode")
        if frozenset() not in self.problem.targets:
            raise ValueError(f"{self.problem.name}: the empty set must be among the targets")
        self._manipulable = tuple(self.problem.manipulable)
        self._scales = {name: (low, high - low) for name, (low, high) in self.problem.manipulable.items()}
        #: for each target set, the places of its variables in the action's values
        self._members = [
            [place for place, name in enumerate(self._manipulable) if name in target] for target in self.problem.targets
        ]
        self._soft = tuple(self.problem.to_native(self.problem.null_action).tolist())
        values = spaces.Box(0.0, 1.0, (len(self._manipulable),), dtype=np.float64)
        return spaces.Dict({"target": spaces.Discrete(len(self._members)), "values": values})

    def decode(self, action: Any) -> Intervention:
        target, values = self._split(action)
        members = self._members[self._index(target)]
        if values.shape != (len(self._manipulable),):
            raise InvalidAction(
                f"values must have shape ({len(self._manipulable)},), one for each of "
                f"{list(self._manipulable)}; given shape {values.shape}"
            )
        point = values.tolist()
        for name, value in zip(self._manipulable, point, strict=True):
            if not 0.0 <= value <= 1.0:
                raise InvalidAction(f"the value of {name} must lie in [0, 1]; given {value}")
        hard = {}
        for place in members:
            name = self._manipulable[place]
            low, span = self._scales[name]
            hard[name] = (True, low + span * point[place])
        return Intervention(self._soft, hard)

    def _index(self, target: Any) -> int:
        try:
            index = operator.index(target)
        except TypeError:
            index = -1
        if not 0 <= index < len(self._members):
            raise InvalidAction(f"target must be a whole number from 0 to {len(self._members) - 1}; given {target!r}")
        return index

    def decode_batch(self, actions: Any) -> Intervention:
        target, values = self._split(actions)
        target = np.asarray(target)
        if target.dtype.kind not in "iu":
            raise InvalidAction(f"every target must be a whole number; given {target}")
        if target.ndim != 1 or values.shape != (len(target), len(self._manipulable)):
            raise InvalidAction(
                f"target and values must have shapes (n,) and (n, {len(self._manipulable)}); "
                f"given {target.shape} and {values.shape}"
            )
        inside = (target >= 0) & (target < len(self._members))
        inside &= ((values >= 0.0) & (values <= 1.0)).all(axis=1)
        if not inside.all():
            first = int(np.argmin(inside))
            raise InvalidAction(
                f"action {first} is outside {self.action_space}; given target {target[first]}, values {values[first]}"
            )
        membership = np.zeros((len(self._members), len(self._manipulable)), dtype=bool)
        for index, places in enumerate(self._members):
            membership[index, places] = True
        masks = membership[target]
        hard = {}
        for place, (name, (low, span)) in enumerate(self._scales.items()):
            if masks[:, place].any():
                hard[name] = (masks[:, place], low + span * values[:, place])
        return Intervention(self._soft, hard)

    def _split(self, action: Any) -> tuple[Any, np.ndarray]:
        try:
            return action["target"], np.asarray(action["values"], dtype=np.float64)
        except (TypeError, KeyError, IndexError, ValueError) as error:
            raise InvalidAction(
                f"the action must be a dict with 'target' and numeric 'values'; given {action!r}"
            ) from error

    def describe(self, intervention: Intervention) -> dict[str, Any]:
        return {name: value for name, (_, value) in intervention.hard.items()}

    def describe_batch(self, intervention: Intervention) -> dict[str, Any]:
        described: dict[str, Any] = {}
        for name, (mask, values) in intervention.hard.items():
            described[name] = np.where(mask, values, 0.0)
            described[f"_{name}"] = mask
        return described

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Any:
        each = 2 if random is None else random
        empty = self.problem.targets.index(frozenset())
        others = [index for index in range(len(self._members)) if index != empty]
        target = np.repeat([empty, *others], [observational, *[each] * len(others)])
        return {"target": target, "values": rng.random((len(target), len(self._manipulable)))}

    def regions(self) -> list[Region]:
        return [Region(len(places), partial(self._actions_at, index)) for index, places in enumerate(self._members)]

    def _actions_at(self, target: int, points: np.ndarray) -> dict[str, np.ndarray]:
        values = np.full((len(points), len(self._manipulable)), 0.5)
        values[:, self._members[target]] = points
        return {"target": np.full(len(points), target), "values": values}

    def record_action(self, action: Any) -> dict[str, float]:
        return {name: float(value) for name, value in self.describe(self.decode(action)).items()}

    def restore_action(self, recorded: dict[str, float]) -> dict[str, Any]:
        values = np.full(len(self._manipulable), 0.5)
        for name, native in recorded.items():
            low, span = self._scales[name]
            values[self._manipulable.index(name)] = (native - low) / span
        target = list(self.problem.targets).index(frozenset(recorded))
        return {"target": target, "values": values.clip(0.0, 1.0)}

    def task_fields(self) -> dict[str, Any]:
        return {
            "manipulable": dict(self.problem.manipulable),
            "targets": tuple(self.problem.targets),
        }
