"""Dynamic mode: rounds of a system that is unrolled over time slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.actions import Interval
from cbo_gym.modes.base.dynamics import Dynamics, Memory
from cbo_gym.modes.dynamic.interface import DynamicInterface
from cbo_gym.problems import Problem
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.problems.variations.instance import SettingInstanceRules
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.intervention import Mask
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import Observation

Hard = Mapping[str, tuple[Mask, Floats]]


class Past(NamedTuple):
    """State before a round: the number of earlier rounds, and the interventions implemented in earlier slices.

    ``implemented`` is by the variables' names in their slices, as in an :class:`Intervention`.
    """

    rounds: int
    implemented: Hard


class SliceInstanceRules(SettingInstanceRules):
    """Random transforms in dynamic mode: one transform of a variable in all slices, and slices keep their order."""

    keeps_order = True

    def __init__(self, problem: Problem, instance: int) -> None:
        super().__init__(problem, instance)
        slices = problem.data(Slices)
        assert slices is not None, "dynamics refuse a problem without slices"
        self.slices = slices

    @property
    def names(self) -> Sequence[str]:
        return self.slices.names

    @property
    def manipulable(self) -> Mapping[str, Interval]:
        return self.slices.manipulable

    def copies(self, name: str) -> list[str]:
        return [name, *(f"{name}_{index}" for index in range(self.slices.count))]


class DynamicDynamics(DynamicInterface, Dynamics):
    """Hard interventions ``do(X_t = x_t)`` in one time slice after another.

    Slice t has ``trials`` rounds. Each is an independent replicate of the whole history, with fresh noise in all
    slices, the interventions implemented in earlier slices, and the action in slice t. The action of the last round of
    a slice is implemented: it holds in the rounds of later slices. So E[reward | action] depends on the
    implemented interventions and on nothing else in the past. After ``trials`` rounds of each slice the last slice goes
    on, and nothing more is implemented; a shorter experiment never reaches the last slices.

    The program of Aglietti et al. also sets the reward of a past slice to the value observed there, and propagates
    without noise. Without noise both are the same, because the mechanism gives this value. With noise, such a reward
    would be one draw, selected as the best of many.

    ## Action space
    ``Dict(target=Discrete(n_targets), values=Box(0, 1, (n_manipulable,)))``: the index of a target set (one is
    empty) and a value for every manipulable variable of a slice, mapped to native units by the problem. Values of
    variables outside the chosen set have no effect.

    ## Observation space
    ``Dict(nodes=Box(n), slice=Box(1), trial=Box(1))``: the observed variables of the slice that was played in
    topological order, the reward last (zeros at reset); and the slice of the next round, from 0, and its index
    in the slice, from 0 to ``trials - 1``.

    ## Reward
    The value of the slice's reward variable in this round.

    ## Arguments
    ``trials``: the number K of rounds in a slice, 1 to 10,000.

    ## References
    Aglietti, Dhir, Gonzalez & Damoulas (2021), Dynamic causal Bayesian optimization, sec. 2 and 3.
    """

    instance_rules = SliceInstanceRules

    def start(self) -> Past:
        return Past(0, {})

    def in_round(self, intervention: Intervention, memory: Memory) -> Intervention:
        """Move the action to the slice of the next round, and add the interventions implemented in earlier slices.

        The soft part of the intervention is the index of the slice.
        """
        index = self.slice_of(memory.rounds)
        if not index:
            return intervention
        in_slice = self._in_slice[index]
        current = {in_slice[name]: pair for name, pair in intervention.hard.items()}
        return Intervention((float(index),), {**memory.implemented, **current})

    def remember(self, memory: Memory, intervention: Intervention, values: Values) -> Past:
        rounds = memory.rounds + 1
        slice_ends = self.slice_of(rounds) > self.slice_of(memory.rounds)
        return Past(rounds, intervention.hard if slice_ends else memory.implemented)

    def observe_memory(self, memory: Memory) -> Observation:
        index = self.slice_of(memory.rounds)
        return {"slice": np.array([float(index)]), "trial": np.array([float(memory.rounds - index * self.trials)])}

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return all variables of all slices; those of the slice of the round also by their names without an index."""
        values = self.scm.propagate(noise, intervention)
        (index,) = intervention.soft
        if type(index) is float:
            for name, full_name in self._names[int(index)].items():
                values[name] = values[full_name]
            return values
        for name in self.slices.names:
            first, *others = [values[names[name]] for names in self._names]
            # The sum has the shape of the rounds, whose slices may differ.
            values[name] = first + 0.0 * index
            for number, value in enumerate(others, start=1):
                values[name] = np.where(index == number, value, values[name])
        return values

    def random_fields(self, rng: np.random.Generator, observational: int) -> dict[str, Any]:
        history = self.slices.history
        series = history.propagate(history.draw_noise(rng, observational))
        measured = [name for names in self._names[: self.slices.measured] for name in names.values()]
        return {"observational": {name: np.broadcast_to(series[name], observational).copy() for name in measured}}
