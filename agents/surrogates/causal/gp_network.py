"""GPNetwork: a GP for every node of the diagram, from its parents and its own actions, pushed through the graph.

The model of the function-network methods (Astudillo & Frazier 2021; Sussex et al. 2023, sec. 3). A node is
``x = f(parents, own actions) + u`` with ``f`` a GP and ``u`` the node's noise, whose distribution the task tells or
which is normal with a standard deviation that is fitted; in hard mode the noise of nodes with latent causes is expected
to be a good part of what they vary by. Rounds in which a node was set do not train it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.actions import Domains
from cbo_gym.actions.domains import Number
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.surrogates.causal.novelty import gap, ignorance, information, plausible_beyond
from cbo_gym.agents.surrogates.gp.kernels import AdditiveKernel, SquaredExponential, TwoPartKernel
from cbo_gym.agents.surrogates.gp.mechanism import mechanism_kernel
from cbo_gym.agents.surrogates.gp.model import GaussianProcess
from cbo_gym.agents.surrogates.gp.noise import usual_noise
from cbo_gym.agents.surrogates.gp.stack import Stack, stack_key
from cbo_gym.agents.surrogates.protocols import MakeNodeSurrogate, NodeSurrogate
from cbo_gym.scm.noise import Zero
from cbo_gym.scm.scopes import is_minimal
from cbo_gym.task import Action, HardTask, Observation, SoftTask

BELIEF_DRAWS = 32  # of the functions of nodes, for what is believed of the reward
BELIEF_NOISE = 16  # of the nodes' noise, in each
#: node, its GP inputs (``... x d``), the GP's mean and standard deviation (``...``) -> the value of f (``...``)
Plausible = Callable[[str, Tensor, Tensor, Tensor], Tensor]


class GPNetwork:
    """GPs of the reward and its ancestors, and batched passes through the graph.

    Args:
        task: soft or hard.
        device: torch device.
        limited: nodes under constraints, which are modelled with their ancestors as the reward is.
        make: makes the surrogate of a node.
        signals: whether there are any: see the attribute.
        beside: whether the children of signals are given what these depend on, too.

    Attributes:
        nodes: the modelled nodes, the reward and its ancestors, in topological order.
        surrogates: node -> its GP.
        signals: soft mode: nodes each of whose modelled children has latent causes in common with it. Their noise then
            tells of a child's, and a function of what was seen of the node would smear both. What the child is expected
            to be depends on the node's function without noise, its signal: that is what the child's GP is given, as the
            node's GP has it. Since that errs, a function of what the signal depends on is added, beside it.
        minimal: hard mode: the minimal target sets, which searches run over.
        features: of the task's actions.
        inputs: features of the actions played, shape ``(rounds, input_dim)``.
        condense: whether the GPs of noisy networks condense their predictions.
        skips: whether passes leave out mechanisms of nodes that all actions set.
        additive: whether, where latent causes link nodes, noisy nodes of several parents and no action have an
            :class:`~cbo_gym.agents.surrogates.gp.kernels.AdditiveKernel`.
    """

    condense = True
    skips = False
    additive = True

    def __init__(
        self,
        task: SoftTask | HardTask,
        device: str = "cpu",
        limited: Collection[str] = (),
        make: MakeNodeSurrogate = GaussianProcess,
        signals: bool = False,
        beside: bool = True,
    ) -> None:
        self.task = task
        self.device = device
        self._make = make
        self._targets = task.targets if isinstance(task, HardTask) else ()
        self._settable = Domains(task.manipulable if isinstance(task, HardTask) else {})
        actions = task.action_nodes if isinstance(task, SoftTask) else {}
        needed = task.diagram.ancestors([task.reward, *limited])
        self.nodes = tuple(node for node in task.nodes if node in needed)
        self.parents = {node: task.diagram.parents(node) for node in self.nodes}
        self.actions = {node: actions.get(node, ()) for node in self.nodes}
        heard = signals and isinstance(task, SoftTask) and make is GaussianProcess  # whose data can be replaced
        self.signals = self._signals() if heard else ()
        self._columns = {node: self._columns_of(node, beside) for node in self.nodes}
        self.surrogates = {node: self._surrogate(node) for node in self.nodes}
        self._groups = self._by_depth()
        self._stacks = {own: Stack([self.surrogates[node] for node in own]) for own in self._groups if len(own) > 1}
        self._place = {name: place for place, name in enumerate(task.nodes)}
        self.minimal = tuple(t for t in self._targets if is_minimal(task.diagram, task.reward, t, limited))
        self.features = features_of(task, self.minimal)
        self.inputs = torch.empty((0, self.features.input_dim), dtype=torch.float64, device=device)
        self._seen = self.inputs.new_empty((0, len(self.nodes)))  # values of the nodes in these rounds

    def _signals(self) -> tuple[str, ...]:
        linked = self.task.diagram.bidirected
        children = {node: [child for child in self.nodes if node in self.parents[child]] for node in self.nodes}
        return tuple(
            node for node, own in children.items() if own and all(frozenset({node, child}) in linked for child in own)
        )

    def _columns_of(self, node: str, beside: bool) -> tuple[str | int, ...]:
        """What a node's GP is given: parents by their names, actions by their places, then what signals depend on."""
        signals = [parent for parent in self.parents[node] if beside and parent in self.signals]
        given: dict[str | int, None] = {}  # whose order is that of first mention
        for name in (node, *signals):
            given |= dict.fromkeys([*self.parents[name], *self.actions[name]])
        return tuple(given)

    def _surrogate(self, node: str) -> NodeSurrogate:
        columns = self._columns[node]
        noise = None if self.task.noise is None else self.task.noise[node]
        confounded = any(node in pair for pair in self.task.diagram.bidirected)
        surrogate = self._make(
            node,
            max(1, len(columns)),  # a root has a constant input: its GP learns a constant
            noise_std=None if noise is None or confounded else noise.std,
            covariance=self._mechanism_kernel(node),
            rescale=[
                place
                for place, name in enumerate(columns)
                if isinstance(name, str) and name not in self._settable.names
            ],
            condense=self.condense and bool(self.noisy),
            device=self.device,
        )
        if confounded and self._targets and isinstance(surrogate, GaussianProcess):
            surrogate.learn_noise(usual_noise)  # latent causes add to it, and few rounds tell how much
        if node in self._settable.names and isinstance(surrogate, GaussianProcess):
            low, span = self._settable.scales[self._settable.names.index(node)]
            surrogate.assume(low + span / 2, span / 4)
        return surrogate

    def _mechanism_kernel(self, node: str) -> Callable[[int], Kernel]:
        """Makes the kernel of a node's mechanism.

        Without latent causes a kernel of all parents learns as much, and predicts in half the time.
        """
        parents = len(self.parents[node])
        if not parents:
            return SquaredExponential
        if self._hears_signals(node):
            own = parents + len(self.actions[node])
            return partial(TwoPartKernel, first=own) if own < len(self._columns[node]) else SquaredExponential
        noisy = self.additive and self.confounded and node in self.noisy
        additive = noisy and parents > 1 and not self.actions[node]
        return AdditiveKernel if additive else partial(mechanism_kernel, parents=parents)

    def _by_depth(self) -> list[tuple[str, ...]]:
        """The modelled nodes in an order for passes, those together whose GPs may predict at once."""
        depth: dict[str, int] = {}
        for node in self.nodes:
            depth[node] = max((depth[parent] + 1 for parent in self.parents[node]), default=0)
        groups: dict[object, list[str]] = defaultdict(list)
        for node in sorted(self.nodes, key=depth.__getitem__):
            groups[depth[node], stack_key(self.surrogates[node]) or node].append(node)
        return [tuple(own) for own in groups.values()]

    @property
    def noisy(self) -> tuple[str, ...]:
        """The modelled nodes that are, or may be, noisy, and whose noise other nodes hear of."""
        known = self.task.noise
        may_be = [node for node in self.nodes if known is None or not isinstance(known[node], Zero)]
        return tuple(node for node in may_be if node not in self.signals)

    @property
    def confounded(self) -> bool:
        """Whether a latent cause links two of the modelled nodes."""
        return any(pair <= set(self.nodes) for pair in self.task.diagram.bidirected)

    def add(self, action: Action, observation: Observation) -> None:
        """Learn from a round: every node that was not set, and was measured with its parents."""
        played = self.features.inputs(self.features.encode(action)).to(self.inputs)
        self.inputs = torch.cat([self.inputs, played[None]])
        values = observation["nodes"]
        target = self._targets[int(action["target"])] if self._targets else frozenset()
        for node in self.nodes:
            inputs = [
                self._in_domain(name, values[self._place[name]]) if isinstance(name, str) else action[name]
                for name in self._columns[node]
            ]
            measured = not np.isnan([*inputs, values[self._place[node]]]).any()
            if node not in target and measured:
                self.surrogates[node].add(inputs or [0.0], values[self._place[node]])
        if self.signals:
            seen = self.inputs.new_tensor([[values[self._place[node]] for node in self.nodes]])
            self._seen = torch.cat([self._seen, seen])
            self._hear_signals()

    def _hears_signals(self, node: str) -> bool:
        return any(parent in self.signals for parent in self.parents[node])

    def _hear_signals(self) -> None:
        """Put what signals are taken for now in the place of what they were seen as, in the data of their children."""
        values = dict(zip(self.nodes, self._seen.split(1, -1), strict=True))
        with torch.no_grad():
            for node in self.nodes:
                surrogate = self.surrogates[node]
                if self._hears_signals(node) and isinstance(surrogate, GaussianProcess):
                    points, outputs = self._points(node, values, self.inputs)[:, 0], values[node][:, 0]
                    known = points.isfinite().all(-1) & outputs.isfinite()
                    surrogate.replace(points[known], outputs[known])
                if node in self.signals:
                    values[node] = self._mean(node, self._points(node, values, self.inputs))

    def expected_nodes(self, action: Action) -> dict[str, float]:
        """Each modelled node under an action, pushed through the posterior means without noise."""
        inputs = self.features.inputs(self.features.encode(action)).to(self.inputs)
        with torch.no_grad():
            values = self._pass(inputs[None], self.nodes, self._mean)
        return {node: float(values[node].reshape(-1)[0]) for node in self.nodes}

    def reward_posterior(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of E[reward] under actions, ``(b,)`` each.

        Functions of the nodes above the reward lie ``z`` standard deviations off their means, with a ``z`` a node that
        all actions and all noise of a draw have in common, as if a function erred alike everywhere. To the variance of
        the means over these draws the mean variance of the reward's own function is added.

        Args:
            inputs: features of actions, ``b x input_dim``.
        """
        upstream, count = self.nodes[:-1], BELIEF_DRAWS if self.nodes[:-1] else 1
        points = SobolEngine(max(1, len(upstream)), scramble=True, seed=0).draw(count, dtype=torch.float64)
        normal = torch.special.ndtri(points.clamp(1e-9, 1.0 - 1e-9)).to(inputs)
        off = {node: z.repeat_interleave(len(inputs))[:, None] for node, z in zip(upstream, normal.T, strict=False)}
        own: list[Tensor] = []

        def plausible(node: str, points: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            if node in off:
                return mean + off[node] * std
            own.append(std.square().mean(-1))
            return mean

        noise = self.draw_noise(BELIEF_NOISE, seed=0)
        means = self.rollout(inputs.repeat(count, 1), plausible, noise)[self.nodes[-1]].mean(-1).view(count, -1)
        variance = means.var(0, correction=0) + own[0].view(count, -1).mean(0)
        return means.mean(0), variance.sqrt()

    def draw_noise(self, count: int, seed: int) -> dict[str, Tensor]:
        """Quasi-random noise of the noisy nodes, less its mean (which is part of f): each of shape ``(count,)``."""
        noisy = self.noisy
        if not noisy:
            return {}
        points = SobolEngine(len(noisy), scramble=True, seed=seed).draw(count, dtype=torch.float64)
        uniforms = points.clamp(1e-9, 1.0 - 1e-9)
        return {node: self.noise_of(node, column) for node, column in zip(noisy, uniforms.unbind(-1), strict=True)}

    def noise_of(self, node: str, uniforms: Tensor) -> Tensor:
        """Noise of a node, less its mean, from numbers in (0, 1) of any shape."""
        if self.task.noise is not None:
            known = self.task.noise[node]
            return torch.from_numpy(known.from_uniform(uniforms.cpu().numpy()) - known.mean).to(self.device)
        return self.surrogates[node].noise_scale * torch.special.ndtri(uniforms.to(self.device))

    def rollout(self, inputs: Tensor, plausible: Plausible, noise: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Values of the nodes under actions, for one plausible choice of every node's function.

        Args:
            inputs: features of the actions, ``b x input_dim``: soft mode the action; hard mode the values of the
                manipulable variables, then the membership of the target set.
            plausible: picks f between the GP's bounds.
            noise: of shape ``(s,)`` a node, or empty.

        Returns:
            node -> tensor of shape ``b x s`` (``b x 1`` where nothing upstream is noisy), differentiable.
        """

        def value(nodes: tuple[str, ...], points: list[Tensor]) -> list[Tensor]:
            found = []
            for node, own, mean, std in zip(nodes, points, *self._posteriors(nodes, points), strict=True):
                natural = plausible(node, own, mean, std)
                found.append(natural + noise[node] if node in noise else natural)
            return found

        return self._pass_by_groups(inputs, self._groups, value)

    def _posteriors(self, nodes: tuple[str, ...], points: list[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """Means and standard deviations of the functions of a group's nodes, ``b x s`` each."""
        stack, shape = self._stacks.get(nodes), points[0].shape
        alike = shape[1] == 1 and all(own.shape == shape for own in points)
        if stack is not None and alike and stack.can_predict(len(points[0])):
            means, stds = stack.posterior(torch.cat(points, 1).transpose(0, 1))
            return means.unsqueeze(-1).unbind(), stds.unsqueeze(-1).unbind()
        each = [self.surrogates[node].posterior(own) for node, own in zip(nodes, points, strict=True)]
        return [mean for mean, _ in each], [std for _, std in each]

    def sample(self, inputs: Tensor, draws: Mapping[str, Tensor], noise: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Values of the nodes at sets of q actions, whose functions are drawn jointly in a set, anew in each sample.

        Args:
            inputs: features of the actions, ``b x q x input_dim``.
            draws: node -> standard normal numbers, ``b x s x q`` or ``1 x s x q``.
            noise: of the same shapes, of some nodes or none.

        Returns:
            node -> tensor of shape ``b x s x q`` (``b x 1 x q`` where it is set), differentiable.
        """
        sets, size = inputs.shape[:2]

        def value(node: str, points: Tensor) -> Tensor:
            mean, root = self.surrogates[node].joint(points.unflatten(0, (sets, size)).transpose(1, 2))
            drawn = root.squeeze(-1) * draws[node] if size == 1 else (root @ draws[node].unsqueeze(-1)).squeeze(-1)
            natural = mean + drawn
            return (natural + noise[node] if node in noise else natural).transpose(1, 2).flatten(0, 1)

        values = self._pass(inputs.flatten(0, 1), self.nodes, value)
        return {node: column.unflatten(0, (sets, size)).transpose(1, 2) for node, column in values.items()}

    def expected_rewards(self, inputs: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """Expected rewards under the posterior means alone, for many actions: ``b x input_dim`` to ``(b,)``."""
        return self._rewards(inputs, self._mean, noise)

    def _rewards(
        self, inputs: Tensor, function: Callable[[str, Tensor], Tensor], noise: Mapping[str, Tensor]
    ) -> Tensor:
        def value(node: str, points: Tensor) -> Tensor:
            natural = function(node, points)
            return natural + noise[node] if node in noise else natural

        return self._pass(inputs, self.nodes, value)[self.nodes[-1]].mean(-1)

    def _mean(self, node: str, points: Tensor) -> Tensor:
        return self.surrogates[node].mean(points)

    def draw_rewards(self, generator: torch.Generator) -> Callable[[Tensor, Mapping[str, Tensor]], Tensor]:
        """A network drawn from the posterior: features of actions ``b x input_dim`` and noise to rewards ``(b,)``."""
        drawn = {node: surrogate.draw(generator) for node, surrogate in self.surrogates.items()}
        return lambda inputs, noise: self._rewards(inputs, lambda node, points: drawn[node](points), noise)

    def ignorance(self, inputs: Tensor) -> Tensor:
        """The greatest :func:`ignorance` of the nodes that actions leave to their mechanisms, ``(b,)``."""
        return self._of_free_nodes(inputs, ignorance).amax(0)

    def information(self, inputs: Tensor) -> Tensor:
        """The sum of :func:`information` over these nodes, ``(b,)``."""
        return self._of_free_nodes(inputs, information).sum(0)

    def _of_free_nodes(self, inputs: Tensor, measure: Callable[[NodeSurrogate, Tensor], Tensor]) -> Tensor:
        """A measure of the nodes' surrogates where the posterior means lead, 0 of nodes that are set: ``nodes x b``."""
        forced = self._forced(inputs)
        found = {node: torch.zeros_like(inputs[:, 0]) for node in self.nodes}

        def value(node: str, points: Tensor) -> Tensor:
            unknown = measure(self.surrogates[node], points).mean(-1)
            found[node] = unknown.where(~forced[node][0][:, 0], found[node]) if node in forced else unknown
            return self._mean(node, points)

        self._pass(inputs, self.nodes, value)
        return torch.stack([found[node].expand(len(inputs)) for node in self.nodes])

    def gap(self, inputs: Tensor, best: float) -> Tensor:
        """The :func:`gap` of the reward node's inputs where the posterior means lead, ``(b,)``."""
        return gap(self.surrogates[self.task.reward], self._reward_inputs(inputs), best)

    @property
    def driven(self) -> tuple[int, ...]:
        """The inputs of the reward's GP that actions reach through other nodes only."""
        return tuple(c for c, name in enumerate(self.parents[self.task.reward]) if name not in self._settable.names)

    def driven_to(self, column: int, sign: float, inputs: Tensor) -> Tensor:
        """Where the posterior means lead one input of the reward's GP, times a sign, ``(b,)``."""
        return sign * self._reward_inputs(inputs)[:, column]

    def plausible_beyond(self, column: int, sign: float, inputs: Tensor) -> Tensor:
        """The :func:`plausible_beyond` of one action, ``1 x input_dim``, in an input of the reward's GP; a scalar."""
        return plausible_beyond(self.surrogates[self.task.reward], self._reward_inputs(inputs)[0], column, sign)

    def _reward_inputs(self, inputs: Tensor) -> Tensor:
        """The inputs of the reward's GP where the posterior means lead, ``b x d``."""
        *others, reward = self.nodes
        return self._points(reward, self._pass(inputs, others, self._mean), inputs)[:, 0]

    def _pass(self, inputs: Tensor, nodes: Sequence[str], value: Callable[[str, Tensor], Tensor]) -> dict[str, Tensor]:
        """Values of ``nodes``, in topological order: where they are not set, what ``value`` makes of their inputs."""

        def values(alone: tuple[str, ...], points: list[Tensor]) -> list[Tensor]:
            return list(map(value, alone, points))

        return self._pass_by_groups(inputs, [(node,) for node in nodes], values)

    def _pass_by_groups(
        self,
        inputs: Tensor,
        groups: Sequence[tuple[str, ...]],
        value: Callable[[tuple[str, ...], list[Tensor]], list[Tensor]],
    ) -> dict[str, Tensor]:
        """As :meth:`_pass`, of groups of nodes that do not depend on each other, in topological order."""
        forced = self._forced(inputs)
        settled = {node: setting for node, (mask, setting) in forced.items() if self.skips and mask.all()}
        values: dict[str, Tensor] = {}
        for group in groups:
            free = tuple(node for node in group if node not in settled)
            natural = value(free, [self._points(node, values, inputs) for node in free]) if free else []
            for node, own in zip(free, natural, strict=True):
                values[node] = torch.where(*forced[node], own) if node in forced else own
            values |= {node: settled[node] for node in group if node in settled}
        return values

    def _points(self, node: str, values: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """The inputs of a node's GP, ``b x s x d``: its parents, its own actions, then what signals depend on."""
        columns = [
            self._in_domain(name, values[name]) if isinstance(name, str) else inputs[:, [name]]
            for name in self._columns[node]
        ]
        columns = columns or [torch.zeros_like(inputs[:, :1])]
        return torch.stack(torch.broadcast_tensors(*columns), -1)

    def _in_domain(self, parent: str, values: Number) -> Number:
        """Values of a parent that can be set in units of its domain, others unchanged."""
        names = self._settable.names
        return self._settable.scales[names.index(parent)].to_unit(values) if parent in names else values

    def _forced(self, inputs: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """Hard mode: variable -> mask and native value, both ``b x 1``."""
        count = len(self._settable)
        forced = {}
        for place, name in enumerate(self._settable.names):
            mask = inputs[:, [count + place]] > 0.5
            if name in self.surrogates and mask.any():
                forced[name] = (mask, self._settable.scales[place].to_native(inputs[:, [place]]))
        return forced
