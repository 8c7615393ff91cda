"""GPNetwork: a GP for every node of the diagram, from its parents and its own actions.

This is the model of the function-network methods (Astudillo & Frazier 2021; Sussex et al. 2023, sec. 3). A node is
``x = f(parents, own actions) + u`` with ``f`` a GP and ``u`` the node's noise. The noise is as the task states, or
normal with a fitted standard deviation; in hard mode the prior expects the noise of nodes with latent causes to be a
large part of their variance. A node's GP does not learn from rounds in which the node was set. Predictions compute the
values of the nodes in topological order: a *pass* through the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cbo_gym.actions import Domains
from cbo_gym.actions.domains import Number
from cbo_gym.agent import LeaveOneOut
from cbo_gym.agents.calibration.data_noise import add_measured, standard_error
from cbo_gym.agents.calibration.forecast import Calibration, for_forecasts, leave_one_out, shortened, split_count
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.quasi_random import EDGE, normals, uniforms
from cbo_gym.agents.gp.kernels import Kernel, SquaredExponential
from cbo_gym.agents.gp.model import GaussianProcess, update_together
from cbo_gym.agents.gp.noise import usual_noise
from cbo_gym.agents.gp.protocols import MakeNodeSurrogate, NodeSurrogate
from cbo_gym.agents.gp.stack import Stack, stack_key
from cbo_gym.agents.networks.kernels import additive_kernel, mechanism_kernel, two_part_kernel
from cbo_gym.scm.noise import Zero
from cbo_gym.scm.scopes import minimal_among
from cbo_gym.task import Action, HardTask, Observation, SoftTask

# Numbers of draws of the nodes' functions, and of the nodes' noise with each, for the posterior of the expected reward.
POSTERIOR_DRAWS, POSTERIOR_NOISE = 32, 16
# Number of draws of the nodes' noise for expectations under the mean functions.
EXPECTATION_NOISE = 64
#: Node, its GP inputs (``... x d``), the GP's mean and standard deviation (``...``) -> the value of f (``...``).
Plausible = Callable[[str, Tensor, Tensor, Tensor], Tensor]
#: Inputs of the GPs of g nodes: ``g x b x d`` for a :class:`~cbo_gym.agents.gp.stack.Stack`, or ``b x s x d`` of each.
GroupInputs = Tensor | list[Tensor]


class GPNetwork:
    """GPs of the reward and its ancestors, and batched passes through the graph.

    Args:
        task: the soft or hard task.
        device: torch device.
        constrained: nodes under constraints; they and their ancestors are modelled too.
        make: function that returns the surrogate of a node.
        signals: whether children of the nodes in the attribute ``signals`` are modelled from the signals.
        signal_inputs: whether the GPs of these children also have the inputs of the signals as inputs.

    Attributes:
        nodes: the modelled nodes, the reward and its ancestors, in topological order.
        parents: node -> its parents.
        actions: node -> indices of the coordinates of soft actions that enter it.
        surrogates: node -> its GP.
        signals: nodes of soft tasks that share latent causes with all of their modelled children. The noise of such a
            node is correlated with the child's, so a GP of the child on the node's observed values would be biased. The
            child's GP therefore has as its input the node's *signal*, the mean of the node's GP. A function of the
            signal's inputs is added, because that estimate has an error.
        minimal: minimal target sets of a hard task, among which searches choose.
        features: features of the task's actions.
        settable: domains of the variables that can be set in a hard task.
        inputs: features of the actions played, shape ``(rounds, input_dim)``.
        condense: whether predictions leave out negligible directions of the data, see
            :class:`~cbo_gym.agents.gp.model.GaussianProcess`.
        skips: whether passes leave out mechanisms of nodes that all actions set.
        additive: whether noisy nodes with several parents and no action have an
            :func:`~cbo_gym.agents.networks.kernels.additive_kernel` if latent causes link nodes.
    """

    condense = True
    skips = False
    additive = True

    def __init__(
        self,
        task: SoftTask | HardTask,
        device: str = "cpu",
        constrained: Collection[str] = (),
        make: MakeNodeSurrogate = GaussianProcess,
        signals: bool = False,
        signal_inputs: bool = True,
    ) -> None:
        self.task = task
        self.device = device
        self._make = make
        self._targets = task.targets if isinstance(task, HardTask) else ()
        self.settable = Domains(task.manipulable if isinstance(task, HardTask) else {})
        actions = task.action_nodes if isinstance(task, SoftTask) else {}
        needed = task.diagram.ancestors([task.reward, *constrained])
        self.nodes = tuple(node for node in task.nodes if node in needed)
        # Numbers come before categories, because a mechanism may be affine in its first inputs.
        self.parents = {
            node: tuple(sorted(task.diagram.parents(node), key=lambda name: self._category_count(name) > 0))
            for node in self.nodes
        }
        self.actions = {node: actions.get(node, ()) for node in self.nodes}
        replaceable = isinstance(task, SoftTask) and make is GaussianProcess
        self.signals = self._find_signals() if signals and replaceable else ()
        self._columns = {node: self._columns_of(node, signal_inputs) for node in self.nodes}
        self.surrogates = {node: self._make_surrogate(node) for node in self.nodes}
        self._groups = self._group_nodes()
        self._stacks = {group: Stack([self.surrogates[n] for n in group]) for group in self._groups if len(group) > 1}
        self._index_of = {name: index for index, name in enumerate(task.nodes)}
        self.minimal = tuple(minimal_among(task.diagram, task.reward, self._targets, constrained))
        self.features = features_of(task, self.minimal)
        self.inputs = torch.empty((0, self.features.input_dim), dtype=torch.float64, device=device)
        # Of all rounds, partial ones included: features of the actions, values of the nodes, the variances of their
        # stated errors, and whether the values are those of this system's mechanisms. Only signals need these.
        self._rows = self.inputs
        self._observed = self._errors = self.inputs.new_empty((0, len(self.nodes)))
        self._is_current = self._observed.bool()
        # Whether the surrogates may have data to which they were not updated.
        self._stale = True

    def _find_signals(self) -> tuple[str, ...]:
        linked = self.task.diagram.bidirected
        children = {node: [child for child in self.nodes if node in self.parents[child]] for node in self.nodes}
        return tuple(
            node
            for node, its_children in children.items()
            if its_children and all(frozenset({node, child}) in linked for child in its_children)
        )

    def _category_count(self, column: str | int) -> int:
        """Return the number of categories of a parent or an action's coordinate; 0 for a number."""
        if isinstance(column, int):
            return self.task.codec.domains.category_counts.get(column, 0)
        names = self.settable.names
        return self.settable.category_counts.get(names.index(column), 0) if column in names else 0

    def _columns_of(self, node: str, signal_inputs: bool) -> tuple[str | int, ...]:
        """Return the inputs of a node's GP: names of parents, indices of actions, then the inputs of signals."""
        signals = [parent for parent in self.parents[node] if signal_inputs and parent in self.signals]
        # The keys are distinct, in the order of their first mention.
        columns: dict[str | int, None] = {}
        for name in (node, *signals):
            columns |= dict.fromkeys([*self.parents[name], *self.actions[name]])
        return tuple(columns)

    def _make_surrogate(self, node: str) -> NodeSurrogate:
        columns, settable = self._columns[node], self.settable.names
        noise = None if self.task.noise is None else self.task.noise[node]
        confounded = any(node in pair for pair in self.task.diagram.bidirected)
        categories = {index: count for index, name in enumerate(columns) if (count := self._category_count(name))}
        surrogate = self._make(
            node,
            # The GP of a root has one constant input, and learns a constant.
            max(1, len(columns)),
            noise_std=None if noise is None or confounded else noise.std,
            covariance=self._mechanism_kernel(node),
            rescale=[index for index, name in enumerate(columns) if isinstance(name, str) and name not in settable],
            condense=self.condense,
            device=self.device,
            **({"categories": categories} if categories else {}),
        )
        if isinstance(surrogate, GaussianProcess):
            if confounded and self._targets:
                # Latent causes add noise, and a few rounds do not show how much.
                surrogate.learn_noise(usual_noise)
            if node in settable:
                low, high = self.settable.intervals[settable.index(node)]
                surrogate.set_prior(low + (high - low) / 2, (high - low) / 4)
        return surrogate

    def _mechanism_kernel(self, node: str) -> Callable[[int], Kernel]:
        """Return the function from a number of inputs to the kernel of a node's mechanism."""
        numeric_parents = sum(not self._category_count(name) for name in self.parents[node])
        count = len(self.parents[node]) + len(self.actions[node])
        if not numeric_parents:
            return SquaredExponential
        if self._has_signals(node):
            return partial(two_part_kernel, first=count) if count < len(self._columns[node]) else SquaredExponential
        # Without latent causes the other kernel learns as much as an additive one, and predicts in half the time.
        if self.additive and self.confounded and node in self.noisy and numeric_parents == count > 1:
            return additive_kernel
        return partial(mechanism_kernel, parents=numeric_parents)

    def _group_nodes(self) -> list[tuple[str, ...]]:
        """Return the modelled nodes in an order for passes, in groups whose GPs can predict together."""
        depth: dict[str, int] = {}
        for node in self.nodes:
            depth[node] = max((depth[parent] + 1 for parent in self.parents[node]), default=0)
        groups: dict[object, list[str]] = defaultdict(list)
        for node in sorted(self.nodes, key=depth.__getitem__):
            groups[depth[node], stack_key(self.surrogates[node]) or node].append(node)
        return [tuple(group) for group in groups.values()]

    @property
    def noisy(self) -> tuple[str, ...]:
        """The modelled nodes that are or may be noisy, without signals, whose noise enters no other node."""
        noise = self.task.noise
        may_be_noisy = [node for node in self.nodes if noise is None or not isinstance(noise[node], Zero)]
        return tuple(node for node in may_be_noisy if node not in self.signals)

    @property
    def confounded(self) -> bool:
        """Whether a latent cause links two of the modelled nodes."""
        return any(pair <= set(self.nodes) for pair in self.task.diagram.bidirected)

    def add(self, action: Action, observation: Observation, partial: bool = False) -> None:
        """Learn from a round about each node that was not set, and was measured together with its parents.

        A ``partial`` round has no reward of this system, and its action is not added to ``inputs``. Its target is -1 if
        nothing was set and the task has no empty target. Nodes that ``observation["differs"]`` marks are skipped.
        """
        if not partial:
            self.inputs = torch.cat([self.inputs, self.features.of_actions([action]).to(self.inputs)])
        values, differs = observation["nodes"], observation.get("differs", np.zeros(len(self._index_of), dtype=bool))
        target_index = int(action["target"]) if self._targets else -1
        target = self._targets[target_index] if target_index >= 0 else frozenset()
        indices = [self._index_of[node] for node in self.nodes]
        for node, index in zip(self.nodes, indices, strict=True):
            inputs = [
                self._to_unit(name, values[self._index_of[name]]) if isinstance(name, str) else action[name]
                for name in self._columns[node]
            ]
            is_measured = not np.isnan([*inputs, values[index]]).any()
            if node not in target and is_measured and not differs[index]:
                self.learn(node, inputs, values[index], standard_error(observation, index))
        self._stale = True
        if self.signals:
            self._rows = torch.cat([self._rows, self.features.of_actions([action]).to(self.inputs)])
            observed = self.inputs.new_tensor([[values[index] for index in indices]])
            self._observed = torch.cat([self._observed, observed])
            errors = self.inputs.new_tensor([[standard_error(observation, index) for index in indices]])
            self._errors = torch.cat([self._errors, errors.square()])
            is_current = torch.tensor([[not differs[index] for index in indices]], device=self.device)
            self._is_current = torch.cat([self._is_current, is_current])
            self._update_signals()

    def learn(self, node: str, inputs: Sequence[float], output: float, error: float = 0.0) -> None:
        """Learn a value of one node and its standard error; ``inputs`` are those of its GP, none for a root."""
        add_measured(self.surrogates[node], inputs or [0.0], output, error)
        self._stale = True

    def update(self) -> None:
        """Update all GPs to their data, with one stacked fit."""
        if self._stale:
            gps = [surrogate for surrogate in self.surrogates.values() if isinstance(surrogate, GaussianProcess)]
            update_together(gps)
            self._stale = False

    def _has_signals(self, node: str) -> bool:
        return any(parent in self.signals for parent in self.parents[node])

    def _update_signals(self) -> None:
        """Replace the signals in the data of their children by the present estimates."""
        values = dict(zip(self.nodes, self._observed.split(1, -1), strict=True))
        columns, errors = self._rows.split(1, -1), dict(zip(self.nodes, self._errors.unbind(-1), strict=True))
        is_current = dict(zip(self.nodes, self._is_current.unbind(-1), strict=True))
        with torch.no_grad():
            for node in self.nodes:
                surrogate = self.surrogates[node]
                if self._has_signals(node) and isinstance(surrogate, GaussianProcess):
                    points, outputs = self.node_inputs(node, values, columns)[:, 0], values[node][:, 0]
                    usable = points.isfinite().all(-1) & outputs.isfinite() & is_current[node]
                    surrogate.replace(points[usable], outputs[usable], errors[node][usable])
                if node in self.signals:
                    values[node] = self.mean(node, self.node_inputs(node, values, columns))

    def expected_nodes(self, action: Action, measured: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the value of each modelled node under an action, computed with the posterior means without noise.

        Children of ``measured`` nodes get the measured values, but children of signals get the signals.
        """
        measured = measured or {}

        def value(node: str, points: Tensor) -> Tensor:
            mean = self.mean(node, points)
            return torch.full_like(mean, measured[node]) if node in measured and node not in self.signals else mean

        with torch.no_grad():
            values = self.propagate(self.features.of_actions([action]).to(self.inputs), value)
        return {node: float(values[node].reshape(-1)[0]) for node in self.nodes} | dict(measured)

    def reward_posterior(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of E[reward] under actions, ``(b,)`` each.

        In each draw, the function of every node other than the reward is ``z`` standard deviations above its mean, with
        the same normal ``z`` at all inputs. The variance is that of the expected rewards over the draws, plus the mean
        variance of the reward's function.

        Args:
            inputs: features of actions, ``b x input_dim``.
        """
        upstream = self.nodes[:-1]
        count = POSTERIOR_DRAWS if upstream else 1
        draws = normals(upstream, count, seed=0)
        offsets = {node: z.to(inputs).repeat_interleave(len(inputs))[:, None] for node, z in draws.items()}
        reward_variances: list[Tensor] = []

        def plausible(node: str, points: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            if node in offsets:
                return mean + offsets[node] * std
            reward_variances.append(std.square().mean(-1))
            return mean

        noise = self.draw_noise(POSTERIOR_NOISE, seed=0)
        means = self.rollout(inputs.repeat(count, 1), plausible, noise)[self.nodes[-1]].mean(-1).view(count, -1)
        variance = means.var(0, correction=0) + reward_variances[0].view(count, -1).mean(0)
        return means.mean(0), variance.sqrt()

    def expectations(
        self, inputs: Tensor, nodes: Sequence[str], noise: Mapping[str, Tensor], functions: int, samples: int
    ) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of E[node] over plausible networks, ``b x len(nodes)`` each.

        In each network, the function of a node differs from its mean by the same number of standard deviations at all
        inputs.

        Args:
            inputs: features of actions, ``b x input_dim``.
            nodes: some of the modelled nodes.
            noise: noise from :meth:`draw_noise`, perhaps without some nodes.
            functions: number of networks.
            samples: number of draws in ``noise``.
        """
        offsets = {node: z.repeat_interleave(samples) for node, z in normals(self.nodes, functions, seed=1).items()}
        values = self.rollout(
            inputs,
            lambda node, points, mean, std: mean + std * offsets[node].to(mean),
            {node: draw.repeat(functions) for node, draw in noise.items()},
        )
        shape = len(inputs), functions * samples
        expected = torch.stack([values[node].expand(shape).unflatten(1, (functions, -1)).mean(-1) for node in nodes], 1)
        return expected.mean(-1), expected.std(-1)

    def draw_noise(self, count: int, seed: int) -> dict[str, Tensor]:
        """Return quasi-random noise of the noisy nodes, ``(count,)`` each, less its mean, which is part of f."""
        return {node: self.noise_of(node, column) for node, column in uniforms(self.noisy, count, seed).items()}

    def noise_of(self, node: str, uniforms: Tensor) -> Tensor:
        """Return noise of a node, less its mean, from numbers in (0, 1) of any shape."""
        if self.task.noise is not None:
            distribution = self.task.noise[node]
            values = distribution.from_uniform(uniforms.cpu().numpy()) - distribution.mean
            return torch.from_numpy(values).to(self.device)
        if self._category_count(node) and len(outputs := self.surrogates[node].outputs):
            # Draw categories with their observed frequencies.
            categories = outputs.quantile(uniforms.to(outputs).flatten(), interpolation="nearest")
            return categories.view(uniforms.shape) - outputs.mean()
        self.update()
        return self.surrogates[node].noise_scale * torch.special.ndtri(uniforms.to(self.device))

    def rollout(self, inputs: Tensor, plausible: Plausible, noise: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return values of the nodes under actions, with one plausible function of each node.

        Args:
            inputs: features of the actions, ``b x input_dim``: soft mode the action; hard mode the values of the
                manipulable variables, then the membership of the target set.
            plausible: function that chooses the value of f within the GP's confidence bounds.
            noise: noise of shape ``(s,)`` for each node, or empty.

        Returns:
            node -> tensor of shape ``b x s`` (``b x 1`` if nothing upstream is noisy), differentiable.
        """

        def value(nodes: tuple[str, ...], points: GroupInputs) -> list[Tensor]:
            means, stds = self._posteriors(nodes, points)
            if isinstance(points, Tensor):
                points, means, stds = (list(stacked.unsqueeze(2).unbind()) for stacked in (points, means, stds))
            return list(map(plausible, nodes, points, means, stds))

        return self._propagate_groups(inputs, self._groups, value, noise)

    def rewards_within(
        self, inputs: Tensor, width: float, eta: Mapping[str, Tensor], noise: Mapping[str, Tensor]
    ) -> Tensor:
        """Return expected rewards ``(b,)`` if each node's function is at position eta between its confidence bounds.

        Args:
            inputs: features of actions, ``b x input_dim``.
            width: distance of the bounds from the posterior mean, in standard deviations.
            eta: eta in [-1, 1] of the nodes, ``b x 1`` each; a node without one is at its upper bound.
            noise: noise from :meth:`draw_noise`, or empty.
        """
        highest = torch.ones_like(inputs[:, :1])

        def value(nodes: tuple[str, ...], points: GroupInputs) -> list[Tensor]:
            means, stds = self._posteriors(nodes, points)
            if isinstance(points, Tensor):
                offsets = torch.cat([eta.get(node, highest) for node in nodes], 1).T
                return list((means + width * stds * offsets).unsqueeze(-1).unbind())
            return [mean + width * std * eta.get(node, 1.0) for node, mean, std in zip(nodes, means, stds, strict=True)]

        return self._propagate_groups(inputs, self._groups, value, noise)[self.task.reward].mean(-1)

    def _posteriors(self, nodes: tuple[str, ...], points: GroupInputs) -> Sequence[Any]:
        """Return means and standard deviations of the functions of a group's nodes, ``g x b``, or ``b x s`` of each."""
        if isinstance(points, Tensor):
            return self._stacks[nodes].posterior(points)
        posteriors = [self.surrogates[node].posterior(inputs) for node, inputs in zip(nodes, points, strict=True)]
        return list(zip(*posteriors, strict=True))

    def sample(self, inputs: Tensor, draws: Mapping[str, Tensor], noise: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return values of the nodes at sets of q actions, whose functions are drawn jointly in each set and sample.

        Args:
            inputs: features of the actions, ``b x q x input_dim``.
            draws: node -> standard normal numbers, ``b x s x q`` or ``1 x s x q``.
            noise: noise of the same shapes, for some nodes or none.

        Returns:
            node -> tensor of shape ``b x s x q`` (``b x 1 x q`` if it is set), differentiable.
        """
        sets, size = inputs.shape[:2]

        def value(node: str, points: Tensor) -> Tensor:
            mean, root = self.surrogates[node].joint(points.unflatten(0, (sets, size)).transpose(1, 2))
            normal = draws[node]
            deviation = root.squeeze(-1) * normal if size == 1 else (root @ normal.unsqueeze(-1)).squeeze(-1)
            node_value = mean + deviation + noise[node] if node in noise else mean + deviation
            return node_value.transpose(1, 2).flatten(0, 1)

        values = self.propagate(inputs.flatten(0, 1), value)
        return {node: column.unflatten(0, (sets, size)).transpose(1, 2) for node, column in values.items()}

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int, noise: bool
    ) -> dict[str, np.ndarray] | None:
        """Return :meth:`cbo_gym.agent.Agent.sample_outcomes` of an agent with this network."""
        if not self._are_gps:
            return None
        inputs = self.features.of_actions(actions).to(self.inputs)
        network = self._with_surrogates({node: for_forecasts(gp) for node, gp in self._gps.items()})
        networks, counts = [network], [count]
        if not noise:
            # Draw equally from copies with several lengthscales, see agents.calibration.forecast.
            variants = zip(*map(shortened, network._gps.values()), strict=True)
            networks = [network._with_surrogates(dict(zip(network._gps, gps, strict=True))) for gps in variants]
            counts = split_count(count)
        with torch.no_grad():
            draws = [
                variant._draw_outcomes(inputs, share, seed + index, noise)
                for index, (variant, share) in enumerate(zip(networks, counts, strict=True))
            ]
        return {node: torch.cat([drawn[node] for drawn in draws]).cpu().numpy() for node in self.nodes}

    def leave_one_out(self) -> dict[str, LeaveOneOut]:
        """Return :meth:`cbo_gym.agent.Agent.leave_one_out` of an agent with this network."""
        return leave_one_out(self.surrogates) if self._are_gps else {}

    @property
    def _are_gps(self) -> bool:
        """Whether every node has a Gaussian process from its parents."""
        return all(isinstance(self.surrogates.get(node), GaussianProcess) for node in self.nodes)

    @property
    def _gps(self) -> dict[str, GaussianProcess]:
        return {node: gp for node, gp in self.surrogates.items() if isinstance(gp, GaussianProcess)}

    def _with_surrogates(self, gps: Mapping[str, NodeSurrogate]) -> GPNetwork:
        """Return an updated copy in which the nodes in ``gps`` have these surrogates."""
        copied = copy(self)
        copied.surrogates, copied._stacks, copied._stale = {**self.surrogates, **gps}, {}, True
        copied.update()
        return copied

    def _draw_outcomes(self, inputs: Tensor, count: int, seed: int, noise: bool) -> dict[str, Tensor]:
        """Draw values of the nodes under q actions, ``count x q`` each, or their expectations without ``noise``.

        All surrogates must be Gaussian processes. A draw of an expectation is the expectation under the mean functions,
        with noise, plus the difference between drawn and mean functions, without noise. Functions are drawn jointly for
        all actions.

        Args:
            inputs: features of actions, ``q x input_dim``.
            count: number of draws.
            seed: seed of the draws.
            noise: as for :meth:`~cbo_gym.agent.Agent.sample_outcomes`.
        """
        rng, draws, errors = np.random.default_rng(seed), dict[str, Tensor](), dict[str, Tensor]()
        shape = 1, count, len(inputs)
        for node, gp in self.surrogates.items():
            assert isinstance(gp, GaussianProcess)
            factors = Calibration.of(gp).factors(count, rng)[:, None].to(inputs)
            draws[node] = factors * torch.from_numpy(rng.standard_normal(shape)).to(inputs)
            if noise:
                uniforms = torch.from_numpy(rng.uniform(EDGE, 1.0 - EDGE, shape))
                is_learned = self.task.noise is None and not self._category_count(node)
                errors[node] = self.noise_of(node, uniforms) * (factors if is_learned else 1.0)
        # The noise of signals does not enter their children.
        passed_on = {node: draw for node, draw in errors.items() if node not in self.signals}
        samples = self.sample(inputs[None], draws, passed_on)
        values = {node: sampled[0].expand(shape[1:]) for node, sampled in samples.items()}
        if noise:
            return values | {node: values[node] + errors[node][0] for node in self.signals}
        means = self.propagate(inputs, self.mean)
        expected = self.propagate(inputs, self.mean, noise=self.draw_noise(EXPECTATION_NOISE, seed=0))
        return {node: sampled - means[node].T + expected[node].mean(-1) for node, sampled in values.items()}

    def expected_rewards(self, inputs: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """Return expected rewards under the mean functions, ``b x input_dim`` to ``(b,)``."""
        return self._propagate_groups(inputs, self._groups, self._means, noise)[self.nodes[-1]].mean(-1)

    def _means(self, nodes: tuple[str, ...], points: GroupInputs) -> list[Tensor]:
        """Return means of the functions of a group's nodes, ``b x s`` each."""
        if isinstance(points, Tensor):
            return list(self._stacks[nodes].mean(points).unsqueeze(-1).unbind())
        return [self.mean(node, inputs) for node, inputs in zip(nodes, points, strict=True)]

    def draw_rewards(self, generator: torch.Generator) -> Callable[[Tensor, Mapping[str, Tensor]], Tensor]:
        """Draw a network, and return the function from features ``b x input_dim`` and noise to rewards ``(b,)``."""
        self.update()
        stacked = {nodes: stack.draw(generator) for nodes, stack in self._stacks.items()}
        single = {nodes: self.surrogates[nodes[0]].draw(generator) for nodes in self._groups if nodes not in stacked}

        def value(nodes: tuple[str, ...], points: GroupInputs) -> list[Tensor]:
            if nodes in single:
                return [single[nodes](points[0])]
            joined = (
                points.unsqueeze(2) if isinstance(points, Tensor) else torch.stack(torch.broadcast_tensors(*points))
            )
            return list(stacked[nodes](joined.flatten(1, 2).contiguous()).view(joined.shape[:-1]).unbind())

        def rewards(inputs: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
            return self._propagate_groups(inputs, self._groups, value, noise)[self.nodes[-1]].mean(-1)

        return rewards

    def mean(self, node: str, points: Tensor) -> Tensor:
        """Return the posterior mean of a node's function at inputs of its GP."""
        return self.surrogates[node].mean(points)

    def propagate(
        self,
        inputs: Tensor,
        value: Callable[[str, Tensor], Tensor],
        nodes: Sequence[str] | None = None,
        noise: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """Return values of nodes under actions, by one pass through the graph.

        Args:
            inputs: features of the actions, ``b x input_dim``.
            value: function from a node and the inputs of its GP, ``b x s x d``, to its value if not set, ``b x s``.
            nodes: modelled nodes in topological order, with all their ancestors; None for all modelled nodes.
            noise: noise of shape ``(s,)`` by node, for some nodes or none.
        """
        groups = [(node,) for node in (self.nodes if nodes is None else nodes)]
        return self._propagate_groups(inputs, groups, lambda group, points: [value(group[0], points[0])], noise or {})

    def _propagate_groups(
        self,
        inputs: Tensor,
        groups: Sequence[tuple[str, ...]],
        value: Callable[[tuple[str, ...], GroupInputs], list[Tensor]],
        noise: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        """Return values as :meth:`propagate`, for groups of nodes that do not depend on each other."""
        self.update()
        settings, columns = self.settings(inputs), inputs.split(1, -1)
        skipped = {node: setting for node, (mask, setting) in settings.items() if self.skips and mask.all()}
        values: dict[str, Tensor] = {}
        for group in groups:
            free = tuple(node for node in group if node not in skipped)
            natural = value(free, self._group_inputs(free, values, columns)) if free else []
            for node, node_value in zip(free, natural, strict=True):
                noisy = node_value + noise[node] if node in noise else node_value
                values[node] = torch.where(*settings[node], noisy) if node in settings else noisy
            values |= {node: skipped[node] for node in group if node in skipped}
        return values

    def _group_inputs(
        self, nodes: tuple[str, ...], values: Mapping[str, Tensor], columns: Sequence[Tensor]
    ) -> GroupInputs:
        """Return the inputs of the GPs of a group, joined if there is a stack of them and all have one sample."""
        if nodes in self._stacks and all(self._columns[node] for node in nodes):
            # Join the nodes' first inputs, then their second ones, and so on, in fewer operations than node by node.
            by_position = [
                [self._input(name, values, columns) for name in names]
                for names in zip(*(self._columns[node] for node in nodes), strict=True)
            ]
            if all(column.shape == columns[0].shape for position in by_position for column in position):
                return torch.stack([torch.cat(position, 1) for position in by_position], -1).transpose(0, 1)
        points = [self.node_inputs(node, values, columns) for node in nodes]
        have_one_sample = all(inputs.shape[:2] == points[0].shape[:2] and inputs.shape[1] == 1 for inputs in points)
        return torch.cat(points, 1).transpose(0, 1) if have_one_sample and nodes in self._stacks else points

    def node_inputs(self, node: str, values: Mapping[str, Tensor], columns: Sequence[Tensor]) -> Tensor:
        """Return the inputs of a node's GP, ``b x s x d``: its parents, its own actions, then the inputs of signals.

        ``columns`` are the features of actions, ``b x 1`` each.
        """
        inputs = [self._input(name, values, columns) for name in self._columns[node]]
        return torch.stack(torch.broadcast_tensors(*inputs or [torch.zeros_like(columns[0])]), -1)

    def _input(self, name: str | int, values: Mapping[str, Tensor], columns: Sequence[Tensor]) -> Tensor:
        return self._to_unit(name, values[name]) if isinstance(name, str) else columns[name]

    def _to_unit(self, parent: str, values: Number) -> Number:
        """Return values of a parent that can be set, rescaled to [0, 1] in its domain; those of others unchanged."""
        names = self.settable.names
        return self.settable.scales[names.index(parent)].to_unit(values) if parent in names else values

    def settings(self, inputs: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """Return for each variable set in hard mode which actions set it, and to which native value, ``b x 1`` each."""
        count = len(self.settable)
        settings = {}
        for index, name in enumerate(self.settable.names):
            mask = inputs[:, [count + index]] > 0.5
            if name in self.surrogates and mask.any():
                settings[name] = (mask, self.settable.scales[index].to_native(inputs[:, [index]]))
        return settings
