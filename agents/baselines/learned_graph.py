"""LearnedGraph: learns a causal graph from observations with the PC algorithm, then lets another agent play on it.

A baseline for methods that learn a hidden graph while they play. The PC algorithm (Spirtes, Glymour & Scheines 2000) is
that of causal-learn (Zheng et al. 2024), with Fisher's z test of partial correlations and background knowledge: the
reward has no effects, and edges may be required or forbidden. PC leaves some edges undirected. These are directed as by
Dor & Tarsi (1992), so that the diagram agrees with all independences that PC found if any diagram does.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from cbo_gym._util.arguments import require_probability, require_word, whole_number
from cbo_gym.actions.domains import UNSET
from cbo_gym.agent import Agent, LeaveOneOut
from cbo_gym.errors import ArgumentError, UnsupportedModeError, did_you_mean, naming_the_extra
from cbo_gym.scm.diagram import CausalDiagram, Edge
from cbo_gym.task import Action, GraphKnowledge, HardTask, Info, Mode, Observation, Round, Task

#: Agents that may play on the learned graph -> their arguments.
PLAYERS: dict[str, dict[str, Any]] = {"CBO": {"targets": "MIS"}, "MCBO": {}}


class LearnedGraph(Agent):
    """CBO or MCBO on a graph that PC has learned. Plays hard tasks, with a known or a hidden graph.

    The agent observes until there are enough observations and learns the graph once. Its player is then reset on the
    task with the learned diagram and all rounds so far as initial data. If no manipulable variable is a cause of the
    reward in the diagram, edges from all of them to the reward are added.

    Args:
        player: "CBO", on the minimal intervention sets of the diagram, or "MCBO".
        observations: rounds without intervention before the graph is learned, 10 to 10,000.
        alpha: level of the tests of independence, between 0 and 1.
        required: edges ``(cause, effect)`` that the graph has.
        forbidden: edges that the graph does not have.
        tiers: groups of variables in the order of time; no variable has effects in an earlier group.

    Attributes:
        diagram: the learned diagram; None before it is learned.

    Raises:
        ArgumentError: if an argument is out of range.
        MissingExtraError: if causal-learn is not installed.
        UnsupportedModeError: by :meth:`reset`, if the task has no empty target set.
        ArgumentError: by :meth:`reset`, if the edges contradict each other or name an unknown variable.
    """

    modes = frozenset({Mode.HARD})
    task: HardTask
    diagram: CausalDiagram | None

    def __init__(
        self,
        player: str = "CBO",
        observations: int = 50,
        alpha: float = 0.05,
        required: Collection[Edge] = (),
        forbidden: Collection[Edge] = (),
        tiers: Sequence[Collection[str]] = (),
    ) -> None:
        self.player = require_word("player", player, PLAYERS)
        self.alpha = require_probability("alpha", alpha)
        with naming_the_extra("LearnedGraph"):
            importlib.import_module("causallearn")
        self.observations = whole_number("observations", observations, at_least=10, at_most=10_000)
        self.required, self.forbidden, self.tiers = required, forbidden, tiers

    def setup(self, seed: int) -> None:
        if frozenset() not in self.task.targets:
            raise UnsupportedModeError(
                f"LearnedGraph learns the graph from rounds that only observe, and {self.task.env_id} has none: add "
                "the empty set [] to its targets, or choose another agent"
            )
        self.diagram = None
        self._knowledge = EdgeKnowledge.of(self.task, self.required, self.forbidden, self.tiers)
        self._player: Agent | None = None
        self._seed = seed

    def act(self, observation: Observation) -> Action:
        if self._player is None:
            empty = self.task.targets.index(frozenset())
            observational_rounds = [past for past in self.history if int(past.action["target"]) == empty]
            if len(observational_rounds) < self.observations:
                return {"target": np.int64(empty), "values": np.full(len(self.task.manipulable), UNSET)}
            self._start_player(np.array([past.observation["nodes"] for past in observational_rounds]))
        assert self._player is not None
        return self._player.act(observation)

    def _start_player(self, rows: np.ndarray) -> None:
        """Learn the graph, and start the player on it with all rounds so far."""
        task = self.task
        arrows, lines = learn_edges(rows, task.nodes, self._knowledge, self.alpha)
        self.diagram = direct_edges(task.nodes, arrows, lines, task.reward, self._knowledge)
        if not self.diagram.ancestors([task.reward]) & set(task.manipulable):
            causes = {(name, task.reward) for name in task.manipulable}
            self.diagram = CausalDiagram(self.diagram.nodes, self.diagram.directed | causes)
        nodes = self.diagram.nodes
        self._columns = [task.nodes.index(name) for name in nodes]
        rounds = tuple(Round(past.action, self._reorder(past.observation), past.reward) for past in self.history)
        # Imported here, because the modules are slow to import.
        self._player = getattr(importlib.import_module("cbo_gym.agents"), self.player)(**PLAYERS[self.player])
        known_task = replace(task, graph=GraphKnowledge(nodes, self.diagram), nodes=nodes, initial_data=rounds)
        assert self._player is not None
        self._player.reset(known_task, self._seed)

    def _reorder(self, observation: Observation) -> Observation:
        return {"nodes": np.array(observation["nodes"])[self._columns]}

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if self._player is not None:
            self._player.update(action, self._reorder(observation), reward, info)

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        return None if self._player is None else self._player.reward_posterior(actions)

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        return None if self._player is None else self._player.sample_outcomes(actions, count, seed, noise=noise)

    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        return {} if self._player is None else self._player.leave_one_out()

    def estimated_rewards(self) -> np.ndarray:
        return super().estimated_rewards() if self._player is None else self._player.estimated_rewards()


class EdgeKnowledge(NamedTuple):
    """Edges that a graph is known to have, and edges that it is known not to have.

    Attributes:
        required: edges ``(cause, effect)`` of the graph.
        forbidden: edges that are not of the graph.
    """

    required: frozenset[Edge] = frozenset()
    forbidden: frozenset[Edge] = frozenset()

    @classmethod
    def of(
        cls, task: Task, required: Collection[Edge], forbidden: Collection[Edge], tiers: Sequence[Collection[str]]
    ) -> EdgeKnowledge:
        """Return what is known of a task's edges, given the arguments of :class:`LearnedGraph`.

        Raises:
            ArgumentError: if a name is unknown, required edges form a cycle, or an edge is both required and forbidden.
        """
        if unknown := sorted(set[str]().union(*required, *forbidden, *tiers) - set(task.nodes)):
            raise ArgumentError(
                f"required, forbidden and tiers name {unknown}{did_you_mean(unknown[0], task.nodes)}; the variables "
                f"are {list(task.nodes)}"
            )
        required_edges = frozenset((cause, effect) for cause, effect in required)
        # The diagram raises an error if the edges form a cycle.
        CausalDiagram(task.nodes, required_edges)
        ruled_out = {(cause, effect) for cause, effect in forbidden}
        ruled_out |= {(task.reward, name) for name in task.nodes if name != task.reward}
        for earlier, later in combinations(tiers, 2):
            ruled_out |= set(product(later, earlier))
        if both := sorted(required_edges & ruled_out):
            raise ArgumentError(f"the edges {both} are required and forbidden (by tiers, or as effects of the reward)")
        return cls(required_edges, frozenset(ruled_out | {(effect, cause) for cause, effect in required_edges}))


def learn_edges(
    rows: np.ndarray, nodes: tuple[str, ...], knowledge: EdgeKnowledge, alpha: float
) -> tuple[set[Edge], set[Edge]]:
    """Return the directed and the undirected edges that PC finds in observations of shape ``(n, len(nodes))``."""
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.search.ConstraintBased.PC import pc
    from causallearn.utils.PCUtils.BackgroundKnowledge import BackgroundKnowledge

    varying = [column for column in range(len(nodes)) if np.ptp(rows[:, column]) > 0.0]
    names = [nodes[column] for column in varying]
    standardised = (rows[:, varying] - rows[:, varying].mean(axis=0)) / rows[:, varying].std(axis=0)
    # Deterministic variables make correlations singular.
    jittered = standardised + 1e-3 * np.random.default_rng(0).standard_normal(standardised.shape)
    background = BackgroundKnowledge()
    for cause, effect in sorted(knowledge.forbidden):
        background.add_forbidden_by_node(GraphNode(cause), GraphNode(effect))
    for cause, effect in sorted(knowledge.required):
        background.add_required_by_node(GraphNode(cause), GraphNode(effect))
    result = pc(jittered, alpha, "fisherz", show_progress=False, node_names=names, background_knowledge=background)
    # At the end of an edge, 1 is an arrowhead at the row's node, -1 a tail; 0 if there is no edge.
    ends = result.G.graph
    arrows, lines = set(knowledge.required), set[Edge]()
    for row, node in enumerate(names):
        for column, neighbour in enumerate(names[:row]):
            if not ends[row, column]:
                continue
            allowed = {(node, neighbour), (neighbour, node)} - knowledge.forbidden
            if ends[row, column] == 1 and ends[column, row] == -1:
                allowed &= {(neighbour, node)}
            elif ends[row, column] == -1 and ends[column, row] == 1:
                allowed &= {(node, neighbour)}
            if len(allowed) == 1:
                arrows |= allowed
            elif allowed:
                lines.add(min(allowed))
    return arrows, lines


def direct_edges(
    nodes: Collection[str],
    arrows: Collection[Edge],
    lines: Collection[Edge],
    reward: str,
    knowledge: EdgeKnowledge,
) -> CausalDiagram:
    """Direct the undirected edges, and return the diagram with its nodes in topological order.

    Variables are removed one by one, effects before causes; the edges of a removed variable to the remaining ones are
    directed into it. The next variable to remove has no effects among the remaining ones, and all its undirected
    neighbours are adjacent to its other neighbours, so that no new collider arises. If there is no such variable, the
    one with the fewest effects is removed. Required edges are kept, and forbidden edges are left out.

    Args:
        nodes: the variables.
        arrows: directed edges ``(cause, effect)``.
        lines: undirected edges.
        reward: the variable without effects.
        knowledge: required and forbidden edges.
    """
    remaining, directed, order = set(nodes), set[Edge](), list[str]()
    adjacent_pairs = {frozenset(edge) for edge in (*arrows, *lines)}

    def neighbours(name: str) -> set[str]:
        return {other for other in remaining if frozenset((name, other)) in adjacent_pairs}

    def removal_rank(name: str) -> tuple[int, int, int, str]:
        """Return the numbers of forbidden edges, effects and new colliders if a variable is removed, and its name."""
        adjacent = neighbours(name)
        undirected = {other for other in adjacent if (name, other) in lines or (other, name) in lines}
        new_colliders = sum(frozenset((a, b)) not in adjacent_pairs for a in undirected for b in adjacent - {a})
        ruled_out = sum((other, name) in knowledge.forbidden for other in adjacent)
        return ruled_out, sum((name, other) in arrows for other in adjacent), new_colliders, name

    while remaining:
        causes = {cause for cause, effect in knowledge.required if effect in remaining}
        sink = reward if reward in remaining else min(remaining - causes, key=removal_rank)
        directed |= {(other, sink) for other in neighbours(sink) if (other, sink) not in knowledge.forbidden}
        remaining.discard(sink)
        order.insert(0, sink)
    return CausalDiagram(order, directed)
