"""Discrete mode: the action is one of a list of interventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from cbo_gym.actions import ArmCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.reading import as_index, as_whole_numbers
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.choice import SettingInterface, set_name
from cbo_gym.modes.base.interface import Region
from cbo_gym.modes.base.pricing import Priceable
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.problems.modes.discrete import arms_of
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, DiscreteTask, Mode


class DiscreteInterface(SettingInterface):
    """Actions that choose one of a list of interventions."""

    mode = Mode.DISCRETE
    trial_description = "one of a list of arms"
    unit_rewards = True
    task_class = DiscreteTask
    codec: ArmCodec

    def __init__(self, problem: ProblemStatement) -> None:
        super().__init__(problem)
        self._soft = tuple(problem.to_native(problem.null_action).tolist())
        self._arms = [Intervention(self._soft, Intervention.do(arm).hard) for arm in self.arms]
        self._settable = tuple(dict.fromkeys(name for arm in self.arms for name in arm))
        # For each variable, the arms that set it, and their values.
        self._masks = {name: np.array([name in arm for arm in self.arms]) for name in self._settable}
        self._values = {name: np.array([arm.get(name, 0.0) for arm in self.arms]) for name in self._settable}

    @cached_property
    def arms(self) -> Sequence[Mapping[str, float]]:
        """The arms: variable -> native value to which the arm sets it."""
        return arms_of(self.problem)

    def make_codec(self) -> ArmCodec:
        arms = self.arms
        if not any(arms):
            raise ArgumentError(
                f"{self.problem.name} lists no arms that set variables, so it has no discrete mode; give them as arms "
                "of custom_problem or of a study: [{}, {'ph': 6}, {'ph': 7}]"
            )
        sets = dict.fromkeys(frozenset(arm) for arm in arms)
        return ArmCodec(spaces.Discrete(len(arms)), arms, list(map(set_name, sets)))

    def decode(self, action: Action) -> Intervention:
        return self._arms[as_index(action, len(self._arms), "the arm")]

    def decode_batch(self, actions: Actions) -> Intervention:
        chosen = as_whole_numbers(actions, "arm")
        inside = (chosen >= 0) & (chosen < len(self._arms))
        if chosen.ndim != 1 or not inside.all():
            wrong = f"arm {chosen[~inside][0]}" if chosen.ndim == 1 else f"shape {chosen.shape}"
            raise InvalidAction(f"the arms must be whole numbers from 0 to {len(self._arms) - 1}, (n,); given {wrong}")
        hard = {name: (mask[chosen], self._values[name][chosen]) for name, mask in self._masks.items()}
        # Omit variables that no chosen arm sets, but keep the first variable: its mask has the shape of the batch.
        first = self._settable[0]
        return Intervention(self._soft, {name: pair for name, pair in hard.items() if name == first or pair[0].any()})

    def priceable(self) -> Priceable:
        sets = list(dict.fromkeys(frozenset(arm) for arm in self.arms))
        return Priceable({name: (name,) for items in sets for name in sorted(items)}, sets)

    def affected_nodes(self) -> dict[str, str]:
        return dict.fromkeys(self._settable, "do")

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        if observational and {} not in self.arms:
            raise ArgumentError(f"{self.problem.name} has no arm that only observes; give observational=0")
        observational_arms = [list(self.arms).index({})] * observational
        return np.concatenate([observational_arms, rng.integers(len(self._arms), size=random or 0)]).astype(np.int64)

    def regions(self) -> list[Region]:
        return []

    def all_actions(self) -> np.ndarray:
        return np.arange(len(self._arms))

    def task_fields(self) -> dict[str, Any]:
        return {"arms": tuple(dict(arm) for arm in self.arms)}
