"""Subset mode: soft actions of zeros and ones, the subset of the parameters that are at their upper end."""

from __future__ import annotations

import numpy as np
from gymnasium.error import InvalidAction

from cbo_gym.actions import SuperArmCodec, SuperArmSpace
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.reading import as_numbers
from cbo_gym.errors import short_repr
from cbo_gym.modes.base import Region
from cbo_gym.modes.soft.dynamics import SoftFeedback
from cbo_gym.problems import Problem
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Mode, SubsetTask

ENDS = (0.0, 1.0)
# Largest number of subsets that are enumerated.
MAX_ENUMERATED = 2**14


class SubsetFeedback(SoftFeedback):
    """A bandit whose arms are the subsets of the soft parameters: each is at its lower or its upper end.

    In a linear SEM the parameters select the nodes under intervention. Other systems are played between the ends of the
    parameters' domains.

    ## Action space
    ``SuperArmSpace(q, q)``, a ``MultiBinary(q)``: 1 where a parameter is at the upper end of its domain, and the node
    that it feeds under intervention. There are 2^q subsets, or super arms, which are not listed.

    ## Observation space
    ``Dict(nodes=Box(n))``: the observed variables in topological order, the reward last; zeros at reset.

    ## Reward
    The value of the reward variable in this round.

    ## References
    Varici, Shanmugam, Sattigeri & Tajer (2023), sec. 2; Yan & Tajer (2024), sec. 2.
    """

    mode = Mode.SUBSET
    task_class = SubsetTask
    usual_initial_data = (0, 0)
    codec: SuperArmCodec

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)

    def make_codec(self) -> SuperArmCodec:  # type: ignore[override]
        domains = self.require_parameters()
        return SuperArmCodec(SuperArmSpace(len(domains), len(domains)), domains, domains.names)

    def decode(self, action: Action) -> Intervention:
        numbers = as_numbers(action)
        # floats are several times faster than arrays for few numbers
        _refuse([value for value in numbers.ravel().tolist() if value not in ENDS])
        return super().decode(numbers)

    def decode_batch(self, actions: Actions) -> Intervention:
        numbers = as_numbers(actions)
        _refuse(numbers[(numbers != 0.0) & (numbers != 1.0)].tolist())
        return super().decode_batch(numbers)

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return by default 2q + 1 random subsets."""
        count = 2 * self.scm.action_dim + 1 if random is None else random
        drawn = rng.integers(2, size=(count, self.scm.action_dim))
        return np.concatenate([np.tile(np.rint(self._null), (observational, 1)), drawn]).astype(np.int8)

    def regions(self) -> list[Region]:
        return super().regions() if self.all_actions() is None else []

    def all_actions(self) -> np.ndarray | None:
        return self.codec.space.all() if self.codec.space.count <= MAX_ENUMERATED else None

    def known_maximiser(self) -> Action | None:
        best = super().known_maximiser()
        return best.astype(np.int8) if best is not None and np.isin(best, ENDS).all() else None


def _refuse(entries: list[float]) -> None:
    if entries:
        raise InvalidAction(f"the entries of a subset must be 0 or 1; given {short_repr(entries[0])}")


FEEDBACK = SubsetFeedback
