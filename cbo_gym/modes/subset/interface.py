"""Subset mode: the action is the subset of parameters at the upper end of their domains, others at the lower end."""

from __future__ import annotations

import numpy as np
from gymnasium.error import InvalidAction

from cbo_gym.actions import SuperArmCodec, SuperArmSpace
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.reading import as_numbers
from cbo_gym.errors import short_repr
from cbo_gym.modes.base.interface import Region
from cbo_gym.modes.soft.interface import SoftInterface
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Mode, SubsetTask

ENDS = (0.0, 1.0)
# Largest number of subsets that are enumerated.
MAX_ENUMERATED = 2**14


class SubsetInterface(SoftInterface):
    """Actions that are subsets of the parameters."""

    mode = Mode.SUBSET
    takes_limits = False
    trial_description = ""
    task_class = SubsetTask
    default_initial_data = (0, 0)
    codec: SuperArmCodec

    # Subset mode has no keyword ``max_interventions``.
    def __init__(self, problem: ProblemStatement) -> None:
        super().__init__(problem)

    def make_codec(self) -> SuperArmCodec:  # type: ignore[override]
        domains = self.require_parameters()
        return SuperArmCodec(SuperArmSpace(len(domains), len(domains)), domains, domains.names)

    def decode(self, action: Action) -> Intervention:
        numbers = as_numbers(action)
        # Floats are several times faster than arrays for few numbers.
        _refuse([value for value in numbers.ravel().tolist() if value not in ENDS])
        return super().decode(numbers)

    def decode_batch(self, actions: Actions) -> Intervention:
        numbers = as_numbers(actions)
        _refuse(numbers[(numbers != 0.0) & (numbers != 1.0)].tolist())
        return super().decode_batch(numbers)

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return by default 2q + 1 random subsets."""
        count = 2 * self.scm.action_dim + 1 if random is None else random
        subsets = rng.integers(2, size=(count, self.scm.action_dim))
        return np.concatenate([np.tile(np.rint(self._null), (observational, 1)), subsets]).astype(np.int8)

    def regions(self) -> list[Region]:
        return super().regions() if self.all_actions() is None else []

    def all_actions(self) -> np.ndarray | None:
        return self.codec.space.all() if self.codec.space.count <= MAX_ENUMERATED else None


def _refuse(entries: list[float]) -> None:
    if entries:
        raise InvalidAction(f"the entries of a subset must be 0 or 1; given {short_repr(entries[0])}")
