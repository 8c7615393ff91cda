"""HardView: contextual and dynamic tasks as hard tasks on some of their sets, for agents that play hard tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from gymnasium import spaces

from cbo_gym.actions import ChoiceCodec
from cbo_gym.task import Action, ChoiceTask, HardTask, Mode, Task


class HardView:
    """A hard task on some of the choices of another task, and the mapping between their actions.

    Args:
        task: the other task; its codec is a :class:`ChoiceCodec`.
        indices: indices of the choices, in the order of ``targets``.
        targets: the variables that each of them sets.
        changes: fields of the hard task that differ from ``task``.

    Attributes:
        task: the hard task.
    """

    def __init__(
        self, task: ChoiceTask, indices: Sequence[int], targets: Sequence[frozenset[str]], **changes: Any
    ) -> None:
        codec = task.codec
        assert isinstance(codec, ChoiceCodec)
        self.indices, self._key = list(indices), codec.key
        space = spaces.Dict({"target": spaces.Discrete(len(targets)), "values": codec.space["values"]})
        names = [codec.choices[index] for index in indices]
        common = {field.name: getattr(task, field.name) for field in fields(Task)} | {
            "mode": Mode.HARD,
            "action_space": space,
            "codec": ChoiceCodec(space, codec.domains, "target", targets, names),
        }
        self.task = HardTask(**(common | changes), manipulable=task.manipulable, targets=tuple(targets))

    def has(self, action: Action) -> bool:
        """Return whether the hard task has the choice of an action of the other task."""
        return int(action[self._key]) in self.indices

    def to_hard(self, action: Action) -> Action:
        """Return the hard task's action for an action of the other task."""
        return {"target": np.int64(self.indices.index(int(action[self._key]))), "values": action["values"]}

    def from_hard(self, action: Action) -> Action:
        """Return the other task's action for an action of the hard task."""
        return {self._key: np.int64(self.indices[int(action["target"])]), "values": action["values"]}
