"""Dynamic mode: a system unrolled over time slices, each with trials, the last of which is implemented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_gym._util.arguments import whole_number
from cbo_gym.actions import Interval, PolicyCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.costs import Changed
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base import Description, Feedback, Memory
from cbo_gym.modes.choice import ChoiceInterface
from cbo_gym.problems import Problem
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.scm import Distribution, Floats, Intervention
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.intervention import Mask
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import DynamicTask, GraphKnowledge, Mode, Observation

Hard = Mapping[str, tuple[Mask, Floats]]
MAX_TRIALS = 10_000


class Past(NamedTuple):
    """The past of a round: the number of earlier rounds, and the interventions implemented in earlier slices.

    ``implemented`` has the names of its slices' variables, as in an :class:`Intervention`.
    """

    rounds: int
    implemented: Hard


class DynamicFeedback(ChoiceInterface, Feedback):
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

    ## References
    Aglietti, Dhir, Gonzalez & Damoulas (2021), Dynamic causal Bayesian optimization, sec. 2 and 3.

    Args:
        problem: a problem with slices.
        trials: the number K of rounds in a slice, 1 to 10,000.

    Raises:
        ArgumentError: if the problem has no slices, ``trials`` is not a whole number from 1 to 10,000, or the agents'
            knowledge of the graph is anything but the true graph.
    """

    mode = Mode.DYNAMIC
    task_class = DynamicTask
    key = "target"
    codec_class = PolicyCodec
    remembers = True
    usual_initial_data = (10, 0)

    def __init__(self, problem: Problem, *, trials: int = 10) -> None:
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
        # for each slice, bare name of a variable -> its name in that slice
        self._names = [{name: f"{name}_{index}" for name in self.slices.names} for index in range(self.slices.count)]
        super().__init__(problem)
        # for each slice, name in the first slice -> name in that slice
        self._in_slice = [
            {self._names[0][name]: full_name for name, full_name in names.items()} for names in self._names
        ]
        # an action alone belongs to the first slice
        self._soft = (0.0,)
        self._member_scales = [[(f"{n}_0", index, scale) for n, index, scale in each] for each in self._member_scales]

    def whole_graph(self) -> GraphKnowledge:
        """Return the diagram of one slice."""
        first = {f"{name}_0": name for name in self.slices.names}
        within = [(first[a], first[b]) for a, b in self.scm.diagram.directed if a in first and b in first]
        linked = [[first[name] for name in pair] for pair in self.scm.diagram.bidirected if pair <= set(first)]
        return GraphKnowledge(tuple(first.values()), CausalDiagram(first.values(), within, linked))

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

    def start(self) -> Past:
        return Past(0, {})

    def situate(self, intervention: Intervention, memory: Memory) -> Intervention:
        """Move the action to the slice of the next round, the soft parameter, and add earlier interventions."""
        index = self.slice_of(memory.rounds)
        if not index:
            return intervention
        in_slice = self._in_slice[index]
        own = {in_slice[name]: pair for name, pair in intervention.hard.items()}
        return Intervention((float(index),), {**memory.implemented, **own})

    def remember(self, memory: Memory, intervention: Intervention, values: Values) -> Past:
        rounds = memory.rounds + 1
        ends = self.slice_of(rounds) > self.slice_of(memory.rounds)
        return Past(rounds, intervention.hard if ends else memory.implemented)

    def observe_memory(self, memory: Memory) -> Observation:
        index = self.slice_of(memory.rounds)
        return {"slice": np.array([float(index)]), "trial": np.array([float(memory.rounds - index * self.trials)])}

    def empty_observation(self) -> Observation:
        return {"nodes": np.zeros(len(self.nodes)), **self.observe_memory(self.start())}

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return all variables of all slices, and by their bare names those of the slice of the round."""
        values = self.scm.propagate(noise, intervention)
        (index,) = intervention.soft
        if type(index) is float:
            for name, full_name in self._names[int(index)].items():
                values[name] = values[full_name]
            return values
        for name in self.slices.names:
            values[name] = self._in_play(values, name, index)
        return values

    def _in_play(self, values: Values, name: str, index: Floats) -> Floats:
        """Return a variable in the slice of each of several rounds."""
        first, *others = [values[names[name]] for names in self._names]
        chosen: Floats = first + 0.0 * index
        for number, value in enumerate(others, start=1):
            chosen = np.where(index == number, value, chosen)
        return chosen

    def describe(self, intervention: Intervention) -> Description:
        return super().describe(self._current(intervention))

    def describe_batch(self, intervention: Intervention) -> Description:
        return super().describe_batch(self._current(intervention))

    def changed_items(self, intervention: Intervention) -> Changed:
        """Return the variables set in the slice of the round; earlier interventions have been paid for."""
        return self._current(intervention).hard

    def _current(self, intervention: Intervention) -> Intervention:
        """Return the intervention in the slice of the round, by the variables' bare names."""
        (index,) = intervention.soft
        names, hard = self._names[int(index)], intervention.hard
        return Intervention((), {name: hard[full_name] for name, full_name in names.items() if full_name in hard})

    def affected_nodes(self) -> dict[str, str]:
        return {names[name]: "do" for names in self._names for name in self.manipulable}

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return no actions: the task has whole time series instead.

        Raises:
            ArgumentError: if random interventions are asked for.
        """
        if random:
            raise ArgumentError(f"dynamic mode has no initial interventions; given random={random}")
        return self.actions_at(0, np.empty((0, len(self.codec.sets[0]))))

    def exogenous(self) -> dict[str, Distribution]:
        """Return the noise of the variables of the first slice, by their bare names."""
        whole = super().exogenous()
        return {name: whole[full_name] for name, full_name in self._names[0].items()}

    def task_fields(self) -> dict[str, Any]:
        return {
            **super().task_fields(),
            "targets": tuple(self.slices.targets),
            "slices": self.slices.count,
            "trials": self.trials,
            "unrolled": self.scm.diagram,
        }

    def random_fields(self, rng: np.random.Generator, observational: int) -> dict[str, Any]:
        history = self.slices.history
        series = history.propagate(history.draw_noise(rng, observational))
        measured = [name for names in self._names[: self.slices.measured] for name in names.values()]
        return {"observational": {name: np.broadcast_to(series[name], observational).copy() for name in measured}}


FEEDBACK = DynamicFeedback
