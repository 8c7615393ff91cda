"""Effects of the interventions of a slice, estimated from time series, given how the slice before it turned out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gymnasium import spaces
from torch import Tensor

from cbo_gym.actions import ChoiceCodec, Domains, Interval
from cbo_gym.agents.surrogates.causal.causal_prior import EffectNetwork, ObservationalModel, can_be_simulated
from cbo_gym.agents.surrogates.gp.kernels import AdditiveKernel
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.task import Action, DynamicTask, GraphKnowledge, HardTask, Mode, Observation


class UnrolledNetwork(EffectNetwork):
    """A network over a slice and the one before it, in which the effects of both mostly add up.

    A variable with parents in both is a function of all of them, plus one of each. So what the slice before adds is
    told from few series, also where the variables of this one are set to what none of them has seen.
    """

    def _mechanism_kernel(self, node: str) -> Callable[[int], Kernel]:
        slices = {parent.rpartition("_")[2] for parent in self.parents[node]}
        return AdditiveKernel if len(slices) > 1 else super()._mechanism_kernel(node)


class UnrolledModel(ObservationalModel):
    """Estimates of E[Y_t | do(x), the slice before] from observational time series.

    A GP for each variable of slice t, from its parents in slices t - 1 and t, is fitted to the series. They are pushed
    through the graph with the targets set and the variables of slice t - 1 held at the values that they had in the
    round that was implemented. A slice in which nothing was measured borrows the mechanisms of the last one in which
    something was.

    Args:
        task: dynamic.
        place: t.
        held: variable -> its value in the implemented round of slice t - 1; empty in the first slice.
        device: torch device.
    """

    def __init__(self, task: DynamicTask, place: int, held: Mapping[str, float], device: str = "cpu") -> None:
        series, domains = _series_of(task, place), {}
        for name, value in held.items():
            domains[f"{name}_{place - 1}"] = _around(value, series.get(f"{name}_{place - 1}", np.empty(0)))
        domains |= {f"{name}_{place}": domain for name, domain in task.manipulable.items()}
        super().__init__(_slice_task(task, place, bool(held), domains), device)
        self._network = UnrolledNetwork(self._task, device)
        scales = Domains(domains)
        before = [scales.scales[scales.names.index(f"{n}_{place - 1}")].to_unit(value) for n, value in held.items()]
        self._before = torch.tensor(before, dtype=torch.float64, device=device)
        self._held = frozenset(f"{name}_{place - 1}" for name in held)
        self._place_of_slice = place
        self._order = list(task.manipulable)
        for name, value in held.items():
            if (node := f"{name}_{place - 1}") in self._network.surrogates:
                self._network.surrogates[node].add([0.0], value)  # a constant
        for node in self._network.nodes:
            needed = self._network.parents[node]
            if node in self._held or node not in series:
                continue
            inputs = [
                scales.scales[scales.names.index(parent)].to_unit(series[parent])
                if parent in scales.names
                else series[parent]
                for parent in needed
            ]
            columns = inputs or [np.zeros_like(series[node])]
            self._network.surrogates[node].add(np.stack(columns, axis=-1), series[node])

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        # only the mean reward, for where the series tell nothing
        self._rewards.append(reward)

    def rule(self, target: frozenset[str]) -> str:
        reward = self._task.reward
        known = len(self._network.surrogates[reward]) > 0 and can_be_simulated(self._task.diagram, target, reward)
        return "simulation" if known else "none"

    def informs(self, target: frozenset[str]) -> bool:
        """Whether the series tell anything about the effects of ``target``, a set of the slice's variables."""
        return super().informs(self._own(target))

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """As of the base class, for a target set of the slice's own variables, by their bare names."""
        held = self._before.expand(len(values), -1)
        return super().effect(self._own(target), torch.cat([held, values], -1))

    def _own(self, target: frozenset[str]) -> frozenset[str]:
        """With what is held, and by the names that the unrolled diagram has."""
        return self._held | {f"{name}_{self._place_of_slice}" for name in target}


def _around(value: float, data: np.ndarray) -> Interval:
    """An interval that holds a value and the data."""
    low, high = min([value, *data]), max([value, *data])
    return (low, high) if high > low else (value - 1.0, value + 1.0)


def _series_of(task: DynamicTask, place: int) -> dict[str, np.ndarray]:
    """The series of a slice and the one before it, or of the last ones that were measured under their names."""
    found: dict[str, np.ndarray] = {}
    measured = [at for at in range(task.slices) if f"{task.reward}_{at}" in task.observational]
    if not measured:
        return found
    source = min(place, measured[-1])
    if place and not source:
        return found  # how one slice leads to the next was never seen
    for name in task.nodes:
        found[f"{name}_{place}"] = task.observational[f"{name}_{source}"]
        if place:
            found[f"{name}_{place - 1}"] = task.observational[f"{name}_{source - 1}"]
    return found


def _slice_task(task: DynamicTask, place: int, after: bool, domains: Mapping[str, Interval]) -> HardTask:
    """A hard task over a slice and the one before it; what is held there counts as manipulable, and has no causes."""
    nodes = tuple(f"{name}_{at}" for at in ([place - 1, place] if after else [place]) for name in task.nodes)
    kept = set(nodes)
    here = {f"{name}_{place}" for name in task.nodes}
    directed = [(a, b) for a, b in task.unrolled.directed if a in kept and b in here]
    linked = [(min(pair), max(pair)) for pair in task.unrolled.bidirected if pair <= kept]
    space = spaces.Dict(
        {"target": spaces.Discrete(1), "values": spaces.Box(0.0, 1.0, (len(domains),), dtype=np.float64)}
    )
    return HardTask(
        env_id=task.env_id,
        mode=Mode.HARD,
        graph=GraphKnowledge(nodes, CausalDiagram(nodes, directed, linked)),
        nodes=nodes,
        reward=f"{task.reward}_{place}",
        horizon=task.trials,
        action_space=space,
        observation_space=task.observation_space,
        codec=ChoiceCodec(space, Domains(domains), "target", [frozenset()], ["{}"]),
        manipulable=domains,
        targets=(frozenset(),),
    )
