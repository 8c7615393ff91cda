"""Actions that set variables, as in hard, contextual, dynamic and discrete mode."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from cbo_gym.actions import ChoiceCodec, Domains, LimitedDict, Limits
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.costs import Changed
from cbo_gym.actions.reading import as_choice, as_choices
from cbo_gym.actions.spaces import ON_GRID, unit_box
from cbo_gym.errors import short_repr
from cbo_gym.modes.base.interface import Description, Interface, Region
from cbo_gym.modes.base.pricing import Priceable
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.scm import Intervention
from cbo_gym.task import Action

# Largest number of names that are listed one by one.
MAX_LISTED_NAMES = 4


class SettingInterface(Interface):
    """Actions that set variables."""

    sets_variables = True
    effect_label = "where it can be set"
    parameters_note = "Parameters are in native units, at their null values here."

    def describe(self, intervention: Intervention) -> Description:
        return {name: value for name, (_, value) in intervention.hard.items()}

    def describe_batch(self, intervention: Intervention) -> Description:
        info: Description = {}
        for name, (mask, values) in intervention.hard.items():
            if np.any(mask):
                info[name] = np.where(mask, values, 0.0)
                info[f"_{name}"] = np.array(mask)
        return info

    def changed_items(self, intervention: Intervention) -> Changed:
        """Return the variables that are set."""
        return intervention.hard


class ChoiceInterface(SettingInterface):
    """Actions ``Dict(<key>=Discrete(n), values=Box(0, 1, (n_manipulable,)))``.

    The whole number is the index of a set of variables; the values are those of all manipulable variables, mapped to
    native units by the problem. Values of variables outside the chosen set have no effect. Soft parameters stay at the
    problem's null action.
    """

    #: The action's key of the chosen set.
    key: ClassVar[str]
    codec_class: ClassVar[type[ChoiceCodec]] = ChoiceCodec
    codec: ChoiceCodec

    def __init__(self, problem: ProblemStatement) -> None:
        super().__init__(problem)
        self._keys = (self.key, "values")
        self._manipulable = self.domains.names
        # For each set, the indices of its variables in the action's values; then also their names and scales.
        self._members = [
            [index for index, name in enumerate(self._manipulable) if name in chosen] for chosen in self.codec.sets
        ]
        scaled = list(zip(self._manipulable, range(len(self._manipulable)), self.domains.scales, strict=True))
        self._member_scales = [[scaled[index] for index in members] for members in self._members]
        self._soft = tuple(problem.to_native(problem.null_action).tolist())

    @abstractmethod
    def variable_sets(self) -> Sequence[frozenset[str]]:
        """Return the sets of variables that can be chosen."""

    def set_names(self) -> Sequence[str]:
        """Return short names of the :meth:`variable_sets`."""
        return list(map(set_name, self.variable_sets()))

    def make_codec(self) -> ChoiceCodec:
        sets = self.variable_sets()
        domains = Domains(self.manipulable)
        values = unit_box(domains.levels)
        entries = {self.key: spaces.Discrete(len(sets)), "values": values}
        space = spaces.Dict(entries)
        if self.problem.limits:
            space = LimitedDict(entries, sets, Limits(self.problem.limits, domains))
        return self.codec_class(space, domains, self.key, sets, self.set_names())

    def decode(self, action: Action) -> Intervention:
        chosen, point = as_choice(action, self._keys, len(self._members), self._manipulable)
        members = self._member_scales[chosen]
        if (grid := self.codec.grid) is not None:
            for name, index, _ in members:
                if grid.is_off(index, point[index]):
                    raise InvalidAction(
                        f"the value of {name} must be one of {grid.level_names(index)}; given {point[index]}"
                    )
        native = {name: scale.to_native(point[index]) for name, index, scale in members}
        if self.codec.limits is not None and (broken := self.codec.limits.broken_by(native)):
            raise InvalidAction(f"the action breaks {', '.join(map(repr, broken))}; given {short_repr(native)}")
        return Intervention(self._soft, {name: (True, value) for name, value in native.items()})

    def decode_batch(self, actions: Actions) -> Intervention:
        chosen, values, inside = as_choices(actions, self._keys, len(self._members), len(self._manipulable))
        membership = np.zeros((len(self._members), len(self._manipulable)), dtype=bool)
        for row, members in enumerate(self._members):
            membership[row, members] = True
        masks = membership[chosen.clip(0, len(self._members) - 1)]
        if (grid := self.codec.grid) is not None:
            inside &= (~masks | (np.abs(values - grid.nearest(values)) <= ON_GRID)).all(axis=1)
        if self.codec.limits is not None:
            inside &= self.codec.limits.contains(values, masks)
        self.require_inside(inside, "action {}", **{self.key: chosen, "values": values})
        native = self.domains.to_native(values.T)
        hard = {
            name: (masks[:, index], native[index])
            for index, name in enumerate(self._manipulable)
            if masks[:, index].any()
        }
        return Intervention(self._soft, hard)

    def affected_nodes(self) -> dict[str, str]:
        return dict.fromkeys(self._manipulable, "do")

    def priceable(self) -> Priceable:
        return Priceable({name: (name,) for name in self.domains.names}, self.codec.sets)

    def regions(self) -> list[Region]:
        return [Region(len(members), partial(self.actions_at, index)) for index, members in enumerate(self._members)]

    def actions_at(self, chosen: int, points: np.ndarray) -> dict[str, np.ndarray]:
        """Return a batch of actions that set the variables of a set to ``points`` of shape ``(n, size of the set)``."""
        values = np.tile(self.domains.unset, (len(points), 1))
        values[:, self._members[chosen]] = points
        values = self.domains.round(values)
        if self.codec.limits is not None:
            members = np.zeros(values.shape, dtype=bool)
            members[:, self._members[chosen]] = True
            values = self.codec.limits.repair(values, members)
        return {self.key: np.full(len(points), chosen), "values": values}

    def task_fields(self) -> dict[str, Any]:
        return {"manipulable": dict(self.manipulable)}


def join_names(names: Collection[str], noun: str) -> str:
    """Return ``X1, X2``, or the count of a long list."""
    return f"{len(names)} {noun}" if len(names) > MAX_LISTED_NAMES else ", ".join(sorted(names))


def set_name(variables: Collection[str]) -> str:
    """Return ``{X1, X2}`` for a target set."""
    return "{" + join_names(variables, "variables") + "}"
