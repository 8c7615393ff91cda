"""Dynamics: a problem in a mode, with its mechanisms, so that rounds can be played.

Environments and oracles use it; studies of real systems have an :class:`Interface` alone.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cbo_gym.modes.base.interface import Interface
from cbo_gym.problems import Problem
from cbo_gym.problems.variations.instance import InstanceRules
from cbo_gym.scm import Floats, Intervention, System
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import Action, Observation

# State of earlier rounds, defined by the mode; immutable, so that copies of an environment may share it.
Memory = Any


class Dynamics(Interface):
    """One problem played in one mode: an interface, and the outcomes of its rounds.

    Attributes:
        truth: the same dynamics with the graph known, from which regret is measured; itself if the graph is known.
    """

    #: Class of the random transforms that make instances of the problem.
    instance_rules: ClassVar[type[InstanceRules]] = InstanceRules

    problem: Problem
    scm: System

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.truth: Dynamics = self

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return the outcome of rounds by variable, of the shape of the noise and the batch together."""
        return self.scm.propagate(noise, intervention)

    def objectives(self, values: Values, intervention: Intervention) -> dict[str, Floats]:
        """Return the values of several objectives in rounds by name, each in its own units and direction.

        Args:
            values: result of :meth:`play`.
            intervention: result of :meth:`decode` or :meth:`decode_batch`.
        """
        outcomes = self.problem.outcomes
        return outcomes.several(values, self.cost(intervention) if outcomes.has_cost_objective else 0.0)

    def before(self, noise: Draws) -> Observation:
        """Return the observation before rounds with this noise, if the mode ``observes_before``."""
        return {}

    def start(self) -> Memory:
        """Return the memory before the first round, if the mode ``remembers``."""
        return None

    def in_round(self, intervention: Intervention, memory: Memory) -> Intervention:
        """Return the intervention of an action in the next round, given the earlier rounds, if the mode ``remembers``.

        Args:
            intervention: intervention of the action alone, of one round or a batch of them.
            memory: memory of the rounds before; its entries broadcast against the batch.
        """
        return intervention

    def remember(self, memory: Memory, intervention: Intervention, values: Values) -> Memory:
        """Return the memory after a round, on which the next one depends.

        Args:
            memory: memory before the round, which is not changed.
            intervention: result of :meth:`in_round`.
            values: result of :meth:`play`.
        """
        return memory

    def observe_memory(self, memory: Memory) -> Observation:
        """Return the observation of the memory before the next round, shapes ``(k,)`` or ``(n, k)``."""
        return {}

    def known_maximiser(self) -> Action | None:
        """Return an action that maximises E[Y | action], if theory gives one."""
        return None

    def random_fields(self, rng: np.random.Generator, observational: int) -> dict[str, Any]:
        """Return random fields of ``task_class``, which depend on the seed.

        Args:
            rng: source of randomness.
            observational: number of initial rounds without intervention.
        """
        return {}
