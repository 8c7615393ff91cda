"""CandidateGraphs: a posterior over candidate graphs, for CEO.

It gives the effects of interventions as a mixture over the graphs, and the information that a round is expected to give
about the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.summation import add_up
from cbo_gym.actions import Domains
from cbo_gym.agents.intervention_sets.causal_prior import ObservationalModel
from cbo_gym.agents.intervention_sets.evidence import SmoothExplanation, explain
from cbo_gym.errors import HiddenGraphError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.task import Action, GraphKnowledge, HardTask, Observation

# Probability below which a graph is left out of estimates.
NEGLIGIBLE = 0.01
# Without candidates, all graphs of at most this number of variables are enumerated.
MAX_LISTED = 4
# Number of rounds that are simulated in each graph for an action.
FANTASIES = 2
# With fewer rounds the posterior is uniform.
MIN_ROUNDS = 3


class CandidateGraphs:
    """p(graph | data) over the candidates, and the mixture of their estimates of E[Y | do(x)].

    The evidence of a graph is the product of the evidence of its variables given their parents, by Gaussian processes
    with all scales integrated or averaged out, from the rounds in which the variable was not set. The prior is uniform.

    Args:
        task: hard task whose graph is known, has candidates, or has at most ``MAX_LISTED`` variables.
        device: torch device.

    Attributes:
        diagrams: the candidates.

    Raises:
        HiddenGraphError: if the task has more variables and neither a diagram nor candidates.

    References:
        Branchini, Aglietti, Dhir & Damoulas (2022), Causal entropy optimization, sec. 3.
    """

    def __init__(self, task: HardTask, device: str = "cpu") -> None:
        self._task = task
        self._device = device
        graph = task.graph
        self.diagrams: Sequence[CausalDiagram] = graph.candidates or (
            [graph.diagram] if graph.diagram else _all_diagrams(task)
        )
        self._rounds: list[tuple[Action, Observation, float]] = []
        self._models: dict[int, ObservationalModel] = {}
        # Number of rounds that the model of each graph has learned.
        self._learned: dict[int, int] = {}
        self._explained: dict[tuple[str, tuple[str, ...]], SmoothExplanation] = {}
        self._probabilities: np.ndarray | None = None

    @property
    def observations(self) -> Tensor:
        targets = self._task.targets
        rows = [seen["nodes"] for action, seen, _ in self._rounds if not targets[int(action["target"])]]
        return torch.as_tensor(np.array(rows).reshape(-1, len(self._task.nodes)), device=self._device)

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        self._rounds.append((action, {"nodes": np.array(observation["nodes"], dtype=np.float64)}, reward))
        self._probabilities = None

    @property
    def probabilities(self) -> np.ndarray:
        """The posterior probability of each candidate."""
        if self._probabilities is None:
            self._explained = {}
            self._rows = np.array([observation["nodes"] for _, observation, _ in self._rounds])
            targets = [self._task.targets[int(action["target"])] for action, _, _ in self._rounds]
            # Node -> in which rounds it was not set.
            self._is_free = {
                name: np.array([name not in target for target in targets], bool) for name in self._task.nodes
            }
            scores = np.array([self._log_evidence(diagram) for diagram in self.diagrams])
            weights = np.exp(scores - scores.max())
            self._probabilities = weights / weights.sum()
        return self._probabilities

    @property
    def entropy(self) -> float:
        """The entropy of the posterior, in nats."""
        return float(_entropy(self.probabilities))

    def _log_evidence(self, diagram: CausalDiagram) -> float:
        if len(self._rounds) < MIN_ROUNDS:
            return 0.0
        return add_up(
            self._explanation(name, diagram.parents(name)).log_evidence
            for name in self._task.nodes
            if self._is_free[name].sum() >= MIN_ROUNDS
        )

    def _explanation(self, name: str, parents: tuple[str, ...]) -> SmoothExplanation:
        key = name, tuple(sorted(parents))
        if key not in self._explained:
            rows = self._rows[self._is_free[name]]
            columns = [self._task.nodes.index(parent) for parent in key[1]]
            self._explained[key] = explain(rows[:, columns], rows[:, self._task.nodes.index(name)])
        return self._explained[key]

    def informs(self, target: frozenset[str]) -> bool:
        """Return whether the observations identify the effects of ``target`` in any likely graph."""
        return any(self._model(index).informs(target) for index, _ in self._likely_graphs())

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the standard deviation of E[Y | do(x)] in the mixture of the graphs' estimates."""
        first_moment, second_moment = torch.zeros_like(values[:, 0]), torch.zeros_like(values[:, 0])
        for index, weight in self._likely_graphs():
            mean, std = self._model(index).effect(target, values)
            first_moment += weight * mean
            second_moment += weight * (std.square() + mean.square())
        return first_moment, (second_moment - first_moment.square()).clamp_min(0.0).sqrt()

    def _likely_graphs(self) -> list[tuple[int, float]]:
        """Return the index of each graph that is not negligible, and its probability among these graphs."""
        likely = [(index, float(p)) for index, p in enumerate(self.probabilities) if p >= NEGLIGIBLE]
        total = add_up(p for _, p in likely)
        return [(index, p / total) for index, p in likely]

    def _model(self, index: int) -> ObservationalModel:
        """Return the effect model given that this graph is the true one, updated to all rounds."""
        diagram, task = self.diagrams[index], self._task
        order = [name for name in diagram.topological_order if name != task.reward] + [task.reward]
        if index not in self._models:
            graph_task = replace(task, graph=GraphKnowledge(tuple(order), diagram), nodes=tuple(order))
            self._models[index], self._learned[index] = ObservationalModel(graph_task, self._device), 0
        columns = [task.nodes.index(name) for name in order]
        for action, observation, reward in self._rounds[self._learned[index] :]:
            self._models[index].add(action, {"nodes": observation["nodes"][columns]}, reward)
        self._learned[index] = len(self._rounds)
        return self._models[index]

    def information(self, target: frozenset[str], values: Tensor) -> np.ndarray:
        """Return the expected decrease of the posterior's entropy by a round with each value, in nats, ``(n,)``.

        Rounds are simulated in every likely graph by its own predictions. The target set may be empty.
        """
        domains = Domains({name: span for name, span in self._task.manipulable.items() if name in target})
        native = np.repeat(domains.points_to_native(values.cpu().numpy()), FANTASIES, axis=0)
        forced = dict(zip(domains.names, native.T, strict=True))
        likely = self._likely_graphs()
        prior = np.log([weight for _, weight in likely])
        rng = np.random.default_rng(0)
        expected_entropy = np.zeros(len(values))
        for index, weight in likely:
            simulated = self._simulate(self.diagrams[index], forced, len(native), rng)
            scores = np.stack([self._log_density(self.diagrams[i], forced, simulated) for i, _ in likely], axis=1)
            posterior = np.exp(scores + prior - (scores + prior).max(axis=1, keepdims=True))
            posterior /= posterior.sum(axis=1, keepdims=True)
            expected_entropy += weight * _entropy(posterior).reshape(-1, FANTASIES).mean(axis=1)
        return float(_entropy(np.exp(prior))) - expected_entropy

    def _simulate(
        self, diagram: CausalDiagram, forced: dict[str, np.ndarray], count: int, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        values: dict[str, np.ndarray] = {}
        for name in diagram.topological_order:
            if name in forced:
                values[name] = forced[name]
                continue
            mean, std = self._predict(diagram, name, values, count)
            values[name] = mean + std * rng.standard_normal(count)
        return values

    def _log_density(
        self, diagram: CausalDiagram, forced: dict[str, np.ndarray], values: dict[str, np.ndarray]
    ) -> np.ndarray:
        total = np.zeros(len(next(iter(values.values()))))
        for name in diagram.nodes:
            if name not in forced:
                mean, std = self._predict(diagram, name, values, len(total))
                total -= 0.5 * np.square((values[name] - mean) / std) + np.log(std)
        return total

    def _predict(
        self, diagram: CausalDiagram, name: str, values: dict[str, np.ndarray], count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        parents = tuple(sorted(diagram.parents(name)))
        causes = np.stack([values[parent] for parent in parents], axis=1) if parents else np.empty((count, 0))
        mean, variance, noise = self._explanation(name, parents).predict(causes)
        return mean, np.sqrt(variance + noise)


def _entropy(probabilities: np.ndarray) -> np.ndarray:
    """Entropy along the last axis, in nats."""
    return -(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(axis=-1)


def _all_diagrams(task: HardTask) -> list[CausalDiagram]:
    """Return all diagrams over a few variables in which the reward has no effects."""
    *others, reward = task.nodes
    if len(task.nodes) > MAX_LISTED:
        raise HiddenGraphError(
            f"candidates for the graph are needed for more than {MAX_LISTED} variables, which have too many graphs; "
            f"{task.env_id} gives only the names of {len(task.nodes)}"
        )
    # Two variables have no edge or one in either direction; a variable and the reward have no edge or one.
    edges_of_pairs = [((), (pair,), (pair[::-1],)) for pair in combinations(others, 2)]
    edges_to_reward = [((), ((name, reward),)) for name in others]
    edge_sets = product(*edges_of_pairs, *edges_to_reward)
    diagrams = [CausalDiagram(task.nodes, chain.from_iterable(edges), allow_cycles=True) for edges in edge_sets]
    return [CausalDiagram(diagram.nodes, diagram.directed) for diagram in diagrams if diagram.is_acyclic]
