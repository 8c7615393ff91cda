"""Adversarial mode: an adversary sets some parameters of the mechanisms; the agent observes them after the round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cbo_gym.actions import Domains, GridBox, GridCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.interface import Entry, Region
from cbo_gym.modes.base.parametric import MISSING, number_format, widest_number
from cbo_gym.modes.soft.interface import SoftInterface
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.system import Values
from cbo_gym.task import AdversarialTask, Mode, Observation


class AdversarialInterface(SoftInterface):
    """Actions of the agent, and moves of an adversary."""

    mode = Mode.ADVERSARIAL
    takes_limits = False
    trial_description = ""
    unit_rewards = True
    several_objectives = False
    takes_mixed_domains = False
    task_class = AdversarialTask
    remembers = True

    def __init__(self, problem: ProblemStatement) -> None:
        if (adversary := problem.data(Adversary)) is None:
            raise ArgumentError(f"{problem.name} has no adversary, so no adversarial mode")
        # Number of the agent's coordinates, which the adversary's follow.
        self._agent_dim = problem.scm.action_dim - adversary.coordinates
        self._levels = adversary.levels
        self._action_grid = GridBox(self._agent_dim, self._levels)
        names, intervals = problem.domains.names, problem.domains.intervals
        self.move_domains = Domains(dict(zip(names[self._agent_dim :], intervals[self._agent_dim :], strict=True)))
        self.moves = GridBox(len(self.move_domains), self._levels).all()
        super().__init__(problem)

    def make_codec(self) -> GridCodec:
        parameters = self.require_parameters()
        names, intervals = parameters.names[: self._agent_dim], parameters.intervals[: self._agent_dim]
        domains = Domains(dict(zip(names, intervals, strict=True)) if parameters.named else intervals)
        return GridCodec(self._action_grid, domains)

    def all_actions(self) -> np.ndarray:
        return self._action_grid.all()

    def after(self, nodes: np.ndarray, values: Values) -> Observation:
        scales = zip(self.move_domains.names, self.move_domains.scales)  # noqa: B905
        move = [scale.to_unit(values[name]) for name, scale in scales]
        # Rounding of the native units may leave [0, 1].
        if nodes.ndim == 1:
            return {"nodes": nodes, "adversary": np.array([min(max(value, 0.0), 1.0) for value in move])}
        columns = np.broadcast_arrays(*move, nodes[..., 0])[:-1]
        return {"nodes": nodes, "adversary": np.stack(columns, axis=-1).clip(0.0, 1.0)}

    def empty_observation(self) -> Observation:
        return {"nodes": np.zeros(len(self.nodes)), "adversary": np.zeros(len(self.move_domains))}

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return by default 2q + 1 random actions, to be played against random moves."""
        return self.codec.to_action(super().initial_actions(rng, observational, random))

    def regions(self) -> list[Region]:
        # The search enumerates all actions instead.
        return []

    def entry(self, index: int, intervention: Intervention | None, values: Mapping[str, Floats]) -> Entry:
        if index < self._agent_dim:
            return super().entry(index, intervention, values)
        name, domain = self.problem.domains.names[index], self.problem.domains.intervals[index]
        value = number_format(*domain)(float(values[name])) if name in values else MISSING
        return Entry(f"{name} = {value} (adversary)", f"{name} = {widest_number(*domain)} (adversary)")

    def task_fields(self) -> dict[str, Any]:
        adversary_nodes = {
            node: tuple(i - self._agent_dim for i in indices if i >= self._agent_dim)
            for node, indices in self.scm.action_nodes.items()
        }
        return {
            **super().task_fields(),
            "adversary_nodes": {node: adversary_nodes[node] for node in self.nodes if adversary_nodes.get(node)},
            "adversary_domains": self.move_domains.intervals,
            "adversary_names": self.move_domains.names,
            "levels": self._levels,
        }
