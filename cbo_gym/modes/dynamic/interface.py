"""Dynamic mode: actions in one time slice of a system after another; the last trial of a slice holds in later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cbo_gym._util.arguments import whole_number
from cbo_gym.actions import Interval, PolicyCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.costs import Changed
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.choice import ChoiceInterface
from cbo_gym.modes.base.interface import Description
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.scm import Distribution, Intervention
from cbo_gym.scm.transform import rename_diagram
from cbo_gym.task import DynamicTask, GraphKnowledge, Mode, Observation

MAX_TRIALS = 10_000


class DynamicInterface(ChoiceInterface):
    """Actions that set variables of the slice of the round."""

    mode = Mode.DYNAMIC
    set_label = "set, now or when implemented"
    task_class = DynamicTask
    key = "target"
    codec_class = PolicyCodec
    remembers = True
    default_initial_data = (10, 0)

    def __init__(self, problem: ProblemStatement, *, trials: int = 10) -> None:
        self.trials = whole_number("trials", trials, at_least=1, at_most=MAX_TRIALS)
        if (slices := problem.data(Slices)) is None:
            raise ArgumentError(f"{problem.name} has no slices, so it has no dynamic mode")
        if problem.knowledge is not None:
            raise ArgumentError(
                f"{problem.name}: dynamic mode shows agents the true graph, because one diagram stands for all slices; "
                "leave out the keyword graph"
            )
        self.slices = slices
        self._last = self.slices.count - 1
        # For each slice, name of a variable without an index -> its name in that slice.
        self._names = [{name: f"{name}_{index}" for name in self.slices.names} for index in range(self.slices.count)]
        super().__init__(problem)
        # For each slice, name in the first slice -> name in that slice.
        self._in_slice = [
            {self._names[0][name]: full_name for name, full_name in names.items()} for names in self._names
        ]
        # The soft part of an intervention is the index of its slice. An action by itself is in the first slice.
        self._soft = (0.0,)
        self._member_scales = [
            [(f"{name}_0", index, scale) for name, index, scale in members] for members in self._member_scales
        ]

    def whole_graph(self) -> GraphKnowledge:
        """Return the diagram of one slice."""
        first_slice = self.scm.diagram.subgraph(self._names[0].values())
        without_index = {full_name: name for name, full_name in self._names[0].items()}
        diagram = rename_diagram(first_slice, without_index, self.slices.names)
        return GraphKnowledge(diagram.nodes, diagram)

    @property
    def manipulable(self) -> Mapping[str, Interval]:
        return self.slices.manipulable

    def variable_sets(self) -> Sequence[frozenset[str]]:
        return self.slices.targets

    def slice_of(self, rounds: int) -> int:
        """Return the slice of a round, given the number of earlier rounds."""
        index = rounds // self.trials
        return index if index < self._last else self._last

    def decode_batch(self, actions: Actions) -> Intervention:
        hard = super().decode_batch(actions).hard
        return Intervention(self._soft, {self._names[0][name]: pair for name, pair in hard.items()})

    def empty_observation(self) -> Observation:
        return {"nodes": np.zeros(len(self.nodes)), "slice": np.zeros(1), "trial": np.zeros(1)}

    def describe(self, intervention: Intervention) -> Description:
        return super().describe(self._current(intervention))

    def describe_batch(self, intervention: Intervention) -> Description:
        return super().describe_batch(self._current(intervention))

    def changed_items(self, intervention: Intervention) -> Changed:
        """Return the variables set in the slice of the round; earlier interventions have been paid for."""
        return self._current(intervention).hard

    def _current(self, intervention: Intervention) -> Intervention:
        """Return the intervention in the slice of the round, by the variables' names without an index."""
        (index,) = intervention.soft
        names, hard = self._names[int(index)], intervention.hard
        return Intervention((), {name: hard[full_name] for name, full_name in names.items() if full_name in hard})

    def affected_nodes(self) -> dict[str, str]:
        return {names[name]: "do" for names in self._names for name in self.manipulable}

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return no actions, because the task has whole time series instead; refuse to make random interventions."""
        if random:
            raise ArgumentError(f"dynamic mode has no initial interventions; given random={random}")
        return self.actions_at(0, np.empty((0, len(self.codec.sets[0]))))

    def exogenous(self) -> dict[str, Distribution]:
        """Return the noise of the variables of the first slice, by their names without an index."""
        all_noise = super().exogenous()
        return {name: all_noise[full_name] for name, full_name in self._names[0].items()}

    def task_fields(self) -> dict[str, Any]:
        return {
            **super().task_fields(),
            "targets": tuple(self.slices.targets),
            "slices": self.slices.count,
            "trials": self.trials,
            "unrolled": self.scm.diagram,
        }
