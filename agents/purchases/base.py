"""PurchaseAgent: the base class of the agents of partial mode, which model every node of a function network.

A round of partial mode buys a node: its function is evaluated, at a price, with given parameters and the values of its
parents. Its ancestors are made and paid for in the same round, except those in *stock*, which were made earlier with
the same parameters. If the task has *parts*, nodes that can be bought with any value, an action chooses the values of
the parents instead. A *full evaluation* makes all nodes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from cbo_gym.actions import BoxCodec, Domains
from cbo_gym.agent import Agent, LeaveOneOut
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.common.quasi_random import normals
from cbo_gym.agents.common.search import Effort, maximise
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.purchases.stock import Stock
from cbo_gym.task import Action, Info, Mode, Observation, PartialTask, SoftTask

# Number of draws of the nodes' functions for the posterior mean of the reward, for its expected improvement, for the
# posterior of a single action's reward, and for the choice of the starts of an ascent.
MEAN_SAMPLES, IMPROVEMENT_SAMPLES, POSTERIOR_SAMPLES, COARSE_SAMPLES = 32, 64, 256, 8
# Size of the searches for the best posterior mean and for the best expected improvement.
EFFORT = Effort(raw_samples=512, perturbed=64, generations=3, children=8, restarts=4)
# Search for the maximiser of a drawn network: random points, generations, survivors, and points around each survivor.
RANDOM_POINTS, GENERATIONS, SURVIVORS, CHILDREN = 512, 4, 16, 8
# At its end, number of points around the best one, and their shrinking distances, as shares of the usual perturbation.
NEIGHBOURS, DISTANCES = 64, (0.4, 0.2, 0.1, 0.04)
# Smoothness of the expected improvement, as a share of the standard deviation of the rewards; and its minimum.
SMOOTHNESS, MIN_SMOOTHNESS = 1e-2, 1e-9

# Node and inputs ``... x d`` -> values ``...``.
NodeValue = Callable[[str, Tensor], Tensor]


def soft_view(task: PartialTask) -> SoftTask:
    """Return the soft task whose actions are the parameters of full evaluations."""
    names = dict(zip(task.action_names, task.action_domains, strict=True))
    box = spaces.Box(0.0, 1.0, (len(names),), dtype=np.float64)
    common = {field.name: getattr(task, field.name) for field in fields(SoftTask)}
    return SoftTask(
        **common | {"mode": Mode.SOFT, "action_space": box, "codec": BoxCodec(box, Domains(names)), "initial_data": ()}
    )


class PurchaseAgent(Agent):
    """Base class of agents with a GP for every node, which recommend the best posterior mean of the reward.

    If the composition of the reward is known, the reward has no GP. Without initial data the first rounds are random
    full evaluations, one more than there are parameters. When the remaining budget is below all prices, the agent plays
    the first node, which costs nothing then.

    Args:
        device: torch device.

    Attributes:
        network: the GPs of the nodes.
        stock: the nodes that were made after the initial data.
        remaining_budget: remaining budget; infinite without a budget.
    """

    modes = frozenset({Mode.PARTIAL})
    takes_missing = True
    revision = 2
    task: PartialTask
    network: GPNetwork

    def __init__(self, device: str = "cpu") -> None:
        self.device = require_device(device)

    def setup(self, seed: int) -> None:
        self.view = soft_view(self.task)
        self.network = GPNetwork(self.view, self.device)
        self.stock = Stock(self.task)
        self.remaining_budget = float("inf") if self.task.budget is None else self.task.budget
        # Number q of parameters.
        self._dim = len(self.task.action_domains)
        self._index = {node: index for index, node in enumerate(self.task.nodes)}
        # Index of full evaluations: the reward, which is the last node, or with parts the further choice of all nodes.
        self._all_nodes = len(self.task.codec.choices) - 1
        self._best: np.ndarray | None = None

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        # Fantasies lack the flags "bought", because their nodes are not in stock.
        is_real = "bought" in observation and not info.get("is_past")
        is_made = np.asarray(observation.get("bought", np.isfinite(observation["nodes"]))) > 0.0
        point = np.asarray(action["values"], dtype=float)[: self._dim]
        values = self._input_values(action, point)
        values[is_made] = observation["nodes"][is_made]
        for index in np.flatnonzero(is_made):
            node = self.task.nodes[index]
            if node not in self.network.parents:
                continue
            parents = [values[self._index[parent]] for parent in self.network.parents[node]]
            parameters = [point[column] for column in self.network.actions[node]]
            if np.isfinite(parents).all():
                self.network.learn(node, [*parents, *parameters], float(observation["nodes"][index]))
        if is_real and len(self.history) > len(self.task.initial_data):
            self.stock.add(point, is_made, observation["nodes"])
        if self.task.budget is not None and "spent" in observation:
            self.remaining_budget = self.task.budget - float(observation["spent"][0])
        if is_made.any():
            self._best = None

    def _input_values(self, action: Action, point: np.ndarray) -> np.ndarray:
        """Return the values of nodes that were made before a round or bought as parts, NaN for the others, ``(n,)``."""
        if not self.task.parts:
            return self.stock.values_at(point)
        values = np.full(len(self.task.nodes), np.nan)
        native = self.task.codec.domains.to_native(np.asarray(action["values"], dtype=float).tolist())
        for node, value in zip(self.task.parts, native[self._dim :], strict=True):
            values[self._index[node]] = value
        return values

    def act(self, observation: Observation) -> Action:
        seed = int(self.rng.integers(2**31))
        full_rounds = [past for past in self.history if past.reward > self.task.unfinished]
        if len(full_rounds) <= self._dim or not self._has_data:
            return self.buy_all(self.rng.random(self._dim))
        prices = [self.price(node) for node in self.task.nodes]
        if self.remaining_budget < min((price for price in prices if price > 0.0), default=np.inf):
            return self.buy(self.task.nodes[0], self.best())
        return self.choose(seed)

    @abstractmethod
    def choose(self, seed: int) -> Action:
        """Return the next purchase, after at least one round.

        Args:
            seed: seed of the search.
        """

    @property
    def modelled_nodes(self) -> list[str]:
        """The nodes with a GP."""
        return [node for node in self.network.nodes if not self.is_composition(node)]

    def is_composition(self, node: str) -> bool:
        """Return whether a node is the reward, as a known composition of the other nodes."""
        return node == self.task.reward and self.task.composition is not None

    @property
    def _has_data(self) -> bool:
        return all(len(self.network.surrogates[node]) for node in self.modelled_nodes)

    def price(self, node: str) -> float:
        costs = self.task.costs
        return 0.0 if costs is None else costs.variables.get(node, 0.0)

    def buy(self, node: str, point: np.ndarray, parts: Mapping[str, float] | None = None) -> Action:
        """Return the purchase of a node with parameters ``(q,)``, and with parts: name -> native value."""
        values = self.task.codec.domains.unset.copy()
        values[: self._dim] = point
        for offset, part in enumerate(self.task.parts):
            if parts and part in parts:
                scale = self.task.codec.domains.scales[self._dim + offset]
                values[self._dim + offset] = min(max(float(scale.to_unit(parts[part])), 0.0), 1.0)
        return {"node": np.int64(self._index[node]), "values": values}

    def buy_all(self, point: np.ndarray) -> Action:
        """Return the purchase of all nodes with parameters ``(q,)``."""
        return self.buy(self.task.reward, point) | {"node": np.int64(self._all_nodes)}

    def recommend(self) -> Action:
        return self.buy_all(self.best()) if self.history else super().recommend()

    def best(self) -> np.ndarray:
        """Return the parameters with the best posterior mean of the reward, ``(q,)``."""
        if self._best is None:
            self._best = self.maximise(self.expected_reward, seed=len(self.history))
        return self._best

    def estimated_rewards(self) -> np.ndarray:
        points = np.array([past.action["values"][: self._dim] for past in self.history])
        is_full = np.array([int(past.action["node"]) == self._all_nodes for past in self.history])
        with torch.no_grad():
            means = self.expected_reward(torch.from_numpy(points).to(self.network.inputs)).cpu().numpy()
        return np.where(is_full, means, self.task.unfinished)

    def maximise(self, function: Callable[[Tensor, int], Tensor], seed: int, samples: int = MEAN_SAMPLES) -> np.ndarray:
        """Return parameters ``(q,)`` that maximise a function of parameters ``b x q`` and a number of samples."""

        def acquisition(count: int) -> Callable[[Tensor], Tensor]:
            return lambda inputs: function(inputs.squeeze(-2), count)

        coarse = acquisition(COARSE_SAMPLES)
        best_rounds = sorted(self.history, key=lambda past: -past.reward)[:3]
        return maximise(
            acquisition(samples),
            self.network.features,
            [np.asarray(past.action["values"])[: self._dim] for past in best_rounds],
            seed=seed,
            screening=coarse,
            scouting=coarse,
            effort=EFFORT,
            device=self.device,
        )

    def node_value(self, node: str, points: Tensor, value: NodeValue) -> Tensor:
        """Return values of a node at inputs ``... x d``: of the composition if it is known, else of ``value``."""
        if node == self.task.reward and self.task.composition is not None:
            parents = dict(zip(self.network.parents[node], points.unbind(-1), strict=False))
            return self.task.composition(parents)
        return value(node, points)

    def rewards(self, inputs: Tensor, value: NodeValue) -> Tensor:
        """Return the rewards ``b x s`` of parameters ``b x q``, if the nodes have the values ``value``."""
        values = self.network.propagate(inputs, lambda node, points: self.node_value(node, points, value))
        return values[self.task.reward]

    def sample_nodes(self, samples: int, seed: int = 0, with_noise: bool = True) -> NodeValue:
        """Return a function that samples a node's values: the mean plus a normal draw times the standard deviation.

        The normal draw of a sample is the same at all inputs.
        """
        draws = normals(self.network.nodes, samples, seed)
        noise = self.draw_noise(samples, seed) if with_noise else {}

        def value(node: str, points: Tensor) -> Tensor:
            mean, std = self.network.surrogates[node].posterior(points)
            sample = mean + std * draws[node].to(mean)
            return sample + noise[node] if node in noise else sample

        return value

    def draw_noise(self, samples: int, seed: int = 0) -> dict[str, Tensor]:
        """Return samples of the noise of each noisy node, ``(samples,)``."""
        columns = normals(self.network.noisy, samples, seed + 1)
        return {node: self.network.noise_of(node, torch.special.ndtr(column)) for node, column in columns.items()}

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> dict[str, np.ndarray]:
        """Draw values of the nodes that each action makes, given the stock; NaN for the other nodes."""
        points = np.array([action["values"][: self._dim] for action in actions], dtype=float)
        bought = [self.task.nodes[min(int(action["node"]), len(self.task.nodes) - 1)] for action in actions]
        made = [self._nodes_made_by(action) for action in actions]
        stock = torch.from_numpy(np.array([self.stock.values_at(point) for point in points])).to(self.network.inputs)
        draw = self.sample_nodes(count, seed, noise)

        def value(node: str, inputs: Tensor) -> Tensor:
            sample, in_stock = self.node_value(node, inputs, draw), stock[:, [self._index[node]]]
            is_reused = torch.tensor([[node != name] for name in bought]) & in_stock.isfinite()
            return torch.where(is_reused, in_stock, sample)

        with torch.no_grad():
            values = self.network.propagate(torch.from_numpy(points).to(self.network.inputs), value)
        outcomes = {}
        for node in self.network.nodes:
            draws = values[node].expand(len(points), count).T.cpu().numpy()
            outcomes[node] = np.where([node in nodes for nodes in made], draws, np.nan)
        return outcomes

    def _nodes_made_by(self, action: Action) -> Collection[str]:
        if int(action["node"]) == self._all_nodes:
            return self.task.nodes
        bought = self.task.nodes[int(action["node"])]
        return [bought] if self.task.parts else self.task.diagram.ancestors([bought])

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of E[Y | action], NaN for purchases that do not make the reward."""
        rewards = self.sample_outcomes(actions, POSTERIOR_SAMPLES)[self.task.reward]
        expectations = self.sample_outcomes(actions, POSTERIOR_SAMPLES, noise=False)[self.task.reward]
        return rewards.mean(0), expectations.std(0)

    def expected_nodes(self, action: Action) -> dict[str, float]:
        outcomes = self.sample_outcomes([action], MEAN_SAMPLES)
        return {node: float(draws.mean()) for node, draws in outcomes.items() if not np.isnan(draws).any()}

    def fantasize(self, action: Action, measured: Mapping[str, float] | None = None) -> tuple[Observation, float]:
        """Return the values that a purchase is expected to give, without the flags "bought"."""
        expected = {**(self.expected_nodes(action) if self._has_data else {}), **(measured or {})}
        nodes = np.array([expected.get(node, np.nan) for node in self.task.nodes])
        return {"nodes": nodes}, expected.get(self.task.reward, self.task.unfinished)

    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        return self.network.leave_one_out()

    def expected_reward(self, inputs: Tensor, samples: int = MEAN_SAMPLES) -> Tensor:
        """Return posterior means of the reward with parameters ``b x q``, ``(b,)``."""
        return self.rewards(inputs, self.sample_nodes(samples)).mean(-1)

    def propose(self, seed: int) -> np.ndarray:
        """Return the parameters with the best expected improvement on the best posterior mean, ``(q,)``."""
        best = torch.from_numpy(self.best())[None].to(self.network.inputs)
        with torch.no_grad():
            incumbent = self.expected_reward(best)
        rewards = [past.reward for past in self.history if past.reward > self.task.unfinished]
        width = max(float(np.std(rewards or [0.0])) * SMOOTHNESS, MIN_SMOOTHNESS)

        def log_improvement(inputs: Tensor, samples: int) -> Tensor:
            gains = (self.rewards(inputs, self.sample_nodes(samples)) - incumbent) / width
            return torch.nn.functional.softplus(gains).mean(-1).clamp_min(1e-300).log()

        return self.maximise(log_improvement, seed, IMPROVEMENT_SAMPLES)

    def maximisers_of_draws(self, count: int, seed: int) -> Tensor:
        """Return maximisers of networks drawn from the posterior, ``count x q``.

        Each is the best of random points, of some generations of points around the best ones, and of points ever closer
        to the best one. Without the last points, the best posterior mean would maximise most draws once the posterior
        is narrow.
        """
        generator, features = torch.Generator().manual_seed(seed), self.network.features
        first_points = torch.cat([features.draw(RANDOM_POINTS, generator), torch.from_numpy(self.best())[None]])
        maximisers = []
        with torch.no_grad():
            for _ in range(count):
                functions = {node: self.network.surrogates[node].draw(generator) for node in self.modelled_nodes}

                def value(node: str, points: Tensor, functions: Mapping[str, Callable] = functions) -> Tensor:
                    return functions[node](points)

                points, values = first_points, self.rewards(first_points, value).mean(-1)
                for _ in range(GENERATIONS):
                    fittest = points[values.topk(SURVIVORS).indices]
                    offspring = features.perturb(fittest.repeat_interleave(CHILDREN, 0), generator)
                    points = torch.cat([points, offspring])
                    values = torch.cat([values, self.rewards(offspring, value).mean(-1)])
                best = points[values.argmax()][None]
                for distance in DISTANCES if features.levels is None else ():
                    around = features.perturb(best.expand(NEIGHBOURS, -1), generator)
                    points = torch.cat([best, best + distance * (around - best)])
                    best = points[self.rewards(points, value).mean(-1).argmax()][None]
                maximisers.append(best[0])
        return torch.stack(maximisers)
