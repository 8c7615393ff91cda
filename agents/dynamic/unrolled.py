"""UnrolledModel: estimates of the effects of interventions in a time slice, given the slice before it.

They are learned from observational time series. DCBO uses them as the prior of its causal GPs. In the *unrolled*
diagram, variable X of slice t is the node ``X_t``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from cbo_gym.actions import ChoiceCodec, Domains, Interval
from cbo_gym.agents.gp.kernels import Kernel
from cbo_gym.agents.intervention_sets.causal_prior import EffectNetwork, ObservationalModel, can_be_simulated
from cbo_gym.agents.networks.kernels import additive_kernel
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.task import Action, DynamicTask, GraphKnowledge, HardTask, Mode, Observation


class UnrolledNetwork(EffectNetwork):
    """Network over a slice and the previous one, with a kernel for which their effects are mostly additive.

    A variable with parents in both slices is modelled as a function of all its parents, plus a function of each parent.
    Few series then suffice to learn the effect of the previous slice, even for values of the present variables outside
    the data.
    """

    def _mechanism_kernel(self, node: str) -> Callable[[int], Kernel]:
        slices = {parent.rpartition("_")[2] for parent in self.parents[node]}
        return additive_kernel if len(slices) > 1 else super()._mechanism_kernel(node)


class UnrolledModel(ObservationalModel):
    """Estimates of E[Y_t | do(x), the slice before] from observational time series.

    A GP for each variable of slice t, from its parents in slices t - 1 and t, is fitted to the series. Effects are
    simulated through the graph with the targets set and the variables of slice t - 1 fixed at their values in the
    implemented round. A slice without data has the mechanisms of the last slice with data.

    Args:
        task: dynamic task.
        index: index t of the slice.
        previous: variable -> its value in the implemented round of slice t - 1; empty in the first slice.
        device: torch device.
    """

    def __init__(self, task: DynamicTask, index: int, previous: Mapping[str, float], device: str = "cpu") -> None:
        series = _series_of(task, index)
        fixed = {f"{name}_{index - 1}": value for name, value in previous.items()}
        domains = {node: _around(value, series.get(node, np.empty(0))) for node, value in fixed.items()}
        domains |= {f"{name}_{index}": domain for name, domain in task.manipulable.items()}
        super().__init__(_slice_task(task, index, bool(previous), domains), device)
        self.network = UnrolledNetwork(self._task, device)
        scales = dict(zip(domains, Domains(domains).scales, strict=True))
        coordinates = [scales[node].to_unit(value) for node, value in fixed.items()]
        self._fixed_values = torch.tensor(coordinates, dtype=torch.float64, device=device)
        self._fixed = frozenset(fixed)
        self._index = index
        for node, value in fixed.items():
            if node in self.network.surrogates:
                # A node without parents has a constant input.
                self.network.surrogates[node].add([0.0], value)
        for node in self.network.nodes:
            if node in fixed or node not in series:
                continue
            inputs = [
                scales[parent].to_unit(series[parent]) if parent in scales else series[parent]
                for parent in self.network.parents[node]
            ]
            columns = inputs or [np.zeros_like(series[node])]
            self.network.surrogates[node].add(np.stack(columns, axis=-1), series[node])

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        # Without series the estimate is the mean reward.
        self._rewards.append(reward)

    def rule(self, target: frozenset[str]) -> str:
        reward = self._task.reward
        simulates = len(self.network.surrogates[reward]) > 0 and can_be_simulated(self._task.diagram, target, reward)
        return "simulation" if simulates else "none"

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the effect as in the base class, for a target set whose names have no slice index."""
        fixed_values = self._fixed_values.expand(len(values), -1)
        unrolled_target = self._fixed | {f"{name}_{self._index}" for name in target}
        return super().effect(unrolled_target, torch.cat([fixed_values, values], -1))


def _around(value: float, data: np.ndarray) -> Interval:
    """Return an interval that contains a value and the data."""
    low, high = min([value, *data]), max([value, *data])
    return (low, high) if high > low else (value - 1.0, value + 1.0)


def _series_of(task: DynamicTask, index: int) -> dict[str, np.ndarray]:
    """Return the time series of a slice and the one before it, by unrolled name.

    For a slice without data, they are those of the last slice with data and the one before it.
    """
    series: dict[str, np.ndarray] = {}
    measured = [t for t in range(task.slices) if f"{task.reward}_{t}" in task.observational]
    if not measured:
        return series
    source = min(index, measured[-1])
    if index and not source:
        # Only the first slice was measured, so there are no data of the transition between slices.
        return series
    for name in task.nodes:
        series[f"{name}_{index}"] = task.observational[f"{name}_{source}"]
        if index:
            series[f"{name}_{index - 1}"] = task.observational[f"{name}_{source - 1}"]
    return series


def _slice_task(task: DynamicTask, index: int, has_previous: bool, domains: Mapping[str, Interval]) -> HardTask:
    """Return a slice and the previous one as a hard task; the previous variables are manipulable and have no causes."""
    present = [f"{name}_{index}" for name in task.nodes]
    previous = [f"{name}_{index - 1}" for name in task.nodes] if has_previous else []
    nodes = (*previous, *present)
    directed = [(cause, effect) for cause, effect in task.unrolled.directed if cause in nodes and effect in present]
    linked = [(min(pair), max(pair)) for pair in task.unrolled.bidirected if pair <= set(nodes)]
    space = spaces.Dict(
        {"target": spaces.Discrete(1), "values": spaces.Box(0.0, 1.0, (len(domains),), dtype=np.float64)}
    )
    return HardTask(
        env_id=task.env_id,
        mode=Mode.HARD,
        graph=GraphKnowledge(nodes, CausalDiagram(nodes, directed, linked)),
        nodes=nodes,
        reward=f"{task.reward}_{index}",
        horizon=task.trials,
        action_space=space,
        observation_space=task.observation_space,
        codec=ChoiceCodec(space, Domains(domains), "target", [frozenset()], ["{}"]),
        manipulable=domains,
        targets=(frozenset(),),
    )
