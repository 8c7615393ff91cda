"""Actions that choose a set of variables from a list, and the values that they are set to."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from cbo_gym.envs.base import CausalBanditEnv, Region
from cbo_gym.scm import Intervention


class ChoiceEnv(CausalBanditEnv):
    """A causal bandit with actions ``Dict(<choice>=Discrete(n), values=Box(0, 1, (n_manipulable,)))``.

    The whole number is the place of a set of variables in a list, the values are those of all manipulable variables,
    mapped to native units by the problem. Values of variables outside the chosen set have no effect. Soft parameters,
    where the problem has any, stay at its null action.
    """

    #: the action's key for the set that is chosen
    choice: ClassVar[str]

    @abstractmethod
    def variable_sets(self) -> Sequence[frozenset[str]]:
        """The sets of variables that can be chosen."""

    def build_action_space(self) -> spaces.Space[Any]:
        self._manipulable = tuple(self.problem.manipulable)
        self._scales = {name: (low, high - low) for name, (low, high) in self.problem.manipulable.items()}
        #: for each set, the places of its variables in the action's values
        self._members = [
            [place for place, name in enumerate(self._manipulable) if name in chosen] for chosen in self.variable_sets()
        ]
        self._soft = tuple(self.problem.to_native(self.problem.null_action).tolist())
        values = spaces.Box(0.0, 1.0, (len(self._manipulable),), dtype=np.float64)
        return spaces.Dict({self.choice: spaces.Discrete(len(self._members)), "values": values})

    def decode(self, action: Any) -> Intervention:
        chosen, values = self._split(action)
        members = self._members[self._index(chosen)]
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

    def _index(self, chosen: Any) -> int:
        try:
            index = operator.index(chosen)
        except TypeError:
            index = -1
        if not 0 <= index < len(self._members):
            raise InvalidAction(
                f"{self.choice} must be a whole number from 0 to {len(self._members) - 1}; given {chosen!r}"
            )
        return index

    def decode_batch(self, actions: Any) -> Intervention:
        chosen, values = self._split(actions)
        chosen = np.asarray(chosen)
        if chosen.dtype.kind not in "iu":
            raise InvalidAction(f"every {self.choice} must be a whole number; given {chosen}")
        if chosen.ndim != 1 or values.shape != (len(chosen), len(self._manipulable)):
            raise InvalidAction(
                f"{self.choice} and values must have shapes (n,) and (n, {len(self._manipulable)}); "
                f"given {chosen.shape} and {values.shape}"
            )
        inside = (chosen >= 0) & (chosen < len(self._members))
        inside &= ((values >= 0.0) & (values <= 1.0)).all(axis=1)
        if not inside.all():
            first = int(np.argmin(inside))
            raise InvalidAction(
                f"action {first} is outside {self.action_space}; "
                f"given {self.choice} {chosen[first]}, values {values[first]}"
            )
        membership = np.zeros((len(self._members), len(self._manipulable)), dtype=bool)
        for index, places in enumerate(self._members):
            membership[index, places] = True
        masks = membership[chosen]
        hard = {}
        for place, (name, (low, span)) in enumerate(self._scales.items()):
            if masks[:, place].any():
                hard[name] = (masks[:, place], low + span * values[:, place])
        return Intervention(self._soft, hard)

    def _split(self, action: Any) -> tuple[Any, np.ndarray]:
        try:
            return action[self.choice], np.asarray(action["values"], dtype=np.float64)
        except (TypeError, KeyError, IndexError, ValueError) as error:
            raise InvalidAction(
                f"the action must be a dict with '{self.choice}' and numeric 'values'; given {action!r}"
            ) from error

    def describe(self, intervention: Intervention) -> dict[str, Any]:
        return {name: value for name, (_, value) in intervention.hard.items()}

    def describe_batch(self, intervention: Intervention) -> dict[str, Any]:
        described: dict[str, Any] = {}
        for name, (mask, values) in intervention.hard.items():
            described[name] = np.where(mask, values, 0.0)
            described[f"_{name}"] = mask
        return described

    def regions(self) -> list[Region]:
        return [Region(len(places), partial(self.actions_at, index)) for index, places in enumerate(self._members)]

    def actions_at(self, chosen: int, points: np.ndarray) -> dict[str, np.ndarray]:
        """A batch of actions that set the chosen set's variables to ``points`` of shape ``(n, size of the set)``."""
        values = np.full((len(points), len(self._manipulable)), 0.5)
        values[:, self._members[chosen]] = points
        return {self.choice: np.full(len(points), chosen), "values": values}

    def record_action(self, action: Any) -> Any:
        return {name: float(value) for name, value in self.describe(self.decode(action)).items()}

    def restore_action(self, recorded: Any) -> Any:
        values = np.full(len(self._manipulable), 0.5)
        for name, native in recorded.items():
            low, span = self._scales[name]
            values[self._manipulable.index(name)] = (native - low) / span
        chosen = list(self.variable_sets()).index(frozenset(recorded))
        return {self.choice: chosen, "values": values.clip(0.0, 1.0)}
