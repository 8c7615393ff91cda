"""Effects of interventions from observations, and a GP that starts from them (the causal GP of Aglietti et al. 2020).

``ObservationalModel`` estimates E[Y | do(x)] for a target set, with a standard deviation, from rounds in which nothing
was set. ``CausalGP`` models the reward of one target set, with these estimates as its prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from cbo_gym._util.summation import add_up
from cbo_gym.actions import Domains
from cbo_gym.agents.gp.algebra import OnColumns, Scale, Sum
from cbo_gym.agents.gp.kernels import Dot, Kernel, SquaredExponential
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.noise import MIN_VARIANCE, USUAL_NOISE, Noise, NoiseLevel, usual_noise
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.kernels import mechanism_kernel
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.task import Action, HardTask, Observation

# Number of networks drawn from the posterior, whose spread is the uncertainty of a simulated effect, and of noise
# samples in each.
FUNCTIONS, NOISE_SAMPLES = 16, 16
# Prior standard deviation of the log of the noise's variance about its estimate from observations.
TRUST = 0.5

#: Values of a target set's variables in [0, 1], ``n x d`` -> estimates of E[Y | do(x)] and their standard deviations.
Effect = Callable[[Tensor], tuple[Tensor, Tensor]]


class EffectModel(Protocol):
    """Estimates the effects of interventions before they are played."""

    @property
    def observations(self) -> Tensor:
        """The observed nodes in the task's order, shape ``(n, len(task.nodes))``."""

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        """Learn from a round."""

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """Return E[Y | do(x)] and the standard deviation of that estimate, ``(n,)`` each, in the reward's units.

        Args:
            target: one of the task's target sets, not empty.
            values: values of its variables in the order of ``task.manipulable``, in [0, 1], shape ``n x d``.
        """


class ObservationalModel:
    """Estimates of E[Y | do(x)] from observations alone.

    * *Simulation*: GPs are fitted to the mechanisms of all nodes, and rounds with the targets set are simulated. The
      reward and its ancestors under do(target) need mechanisms that regression on the parents identifies: no
      bidirected edge may end at one of these nodes.
    * *Back-door adjustment* otherwise, if :func:`adjustment_set` finds a set Z: a GP of the reward given the targets
      and Z is averaged over the observed Z.
    * *None* otherwise, or without observations: the estimate is the mean of all rewards, for all x.

    The standard deviation is that of the expectation, not of the reward. The errors of a GP at different inputs are
    taken as fully correlated, as in the covariance ``sigma(x) sigma(x')`` of the causal prior.

    Args:
        task: the hard task.
        device: torch device.
    """

    def __init__(self, task: HardTask, device: str = "cpu") -> None:
        self._task = task
        self._device = device
        self.network = EffectNetwork(task, device)
        self.observations = torch.empty((0, len(task.nodes)), dtype=torch.float64, device=device)
        self._regressions: dict[frozenset[str], GaussianProcess] = {}
        self._rewards: list[float] = []

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        """Learn from a round. An intervention changes only the mean reward, the estimate without observations."""
        self._rewards.append(reward)
        # The index is -1 if nothing was set and the task has no empty target set.
        index = int(action["target"])
        if index >= 0 and self._task.targets[index]:
            return
        self.network.add(action, observation)
        row = torch.as_tensor(observation["nodes"]).to(self.observations)
        self.observations = torch.cat([self.observations, row[None]])
        for target in self._regressions:
            self._add_to_regression(target, row[None])

    def learn_mechanisms(self, action: Action, observation: Observation) -> None:
        """Learn the mechanisms of single nodes, for simulations, from a round that lacks or must not use a reward."""
        self.network.add(action, observation, partial=True)

    def rule(self, target: frozenset[str]) -> str:
        """Return how the effect of ``target`` is estimated: ``"simulation"``, ``"adjustment"`` or ``"none"``."""
        diagram, reward = self._task.diagram, self._task.reward
        if not len(self.observations):
            return "none"
        if can_be_simulated(diagram, target, reward):
            return "simulation"
        return "none" if adjustment_set(diagram, target, reward) is None else "adjustment"

    def informs(self, target: frozenset[str]) -> bool:
        """Return whether the observations identify the effects of ``target``."""
        return self.rule(target) != "none"

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            match self.rule(target):
                case "simulation":
                    return self._simulate(target, values)
                case "adjustment":
                    return self._adjust(target, values)
        mean = add_up(self._rewards) / max(1, len(self._rewards))
        return torch.full_like(values[:, 0], mean), torch.zeros_like(values[:, 0])

    def _simulate(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        network, reward, manipulable = self.network, self._task.reward, list(self._task.manipulable)
        members = [index for index, name in enumerate(manipulable) if name in target]
        inputs = values.new_zeros((len(values), 2 * len(manipulable)))
        inputs[:, members] = values
        inputs[:, [len(manipulable) + index for index in members]] = 1.0
        # The reward's own noise has mean zero and affects no other node.
        noise = {node: draws for node, draws in network.draw_noise(NOISE_SAMPLES, seed=0).items() if node != reward}
        mean, std = network.expectations(inputs, [reward], noise, FUNCTIONS, NOISE_SAMPLES)
        return mean[:, 0], std[:, 0]

    def _adjust(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        typed = self._task.codec.domains.typed
        if target not in self._regressions:
            covariates = self._covariates(target)
            categories = {
                index: len(typed[name].categories)
                for index, name in enumerate(covariates)
                if name in typed and typed[name].categories
            }
            self._regressions[target] = GaussianProcess(
                self._task.reward,
                len(covariates),
                covariance=partial(mechanism_kernel, parents=len(covariates)),
                rescale=[index for index in range(len(covariates)) if covariates[index] not in typed],
                categories=categories,
                device=self._device,
            )
            self._add_to_regression(target, self.observations)
        domains = Domains({name: domain for name, domain in self._task.manipulable.items() if name in target})
        columns = zip(domains.names, domains.to_native(values.unbind(-1)), values.unbind(-1), strict=True)
        set_values = torch.stack([value if name in typed else native for name, native, value in columns], -1)
        adjusted = self._covariate_values(target, self.observations)[:, len(domains) :]
        repeated = set_values[:, None].expand(-1, len(adjusted), -1)
        points = torch.cat([repeated, adjusted.expand(len(values), -1, -1)], -1)
        mean, std = self._regressions[target].posterior(points)
        return mean.mean(-1), std.mean(-1)

    def _covariates(self, target: frozenset[str]) -> list[str]:
        """Return the targets, in the order of ``task.manipulable``, then the adjustment set."""
        chosen = [name for name in self._task.manipulable if name in target]
        return chosen + sorted(adjustment_set(self._task.diagram, target, self._task.reward) or ())

    def _add_to_regression(self, target: frozenset[str], rows: Tensor) -> None:
        rewards = rows[:, self._task.nodes.index(self._task.reward)]
        self._regressions[target].add(self._covariate_values(target, rows).cpu(), rewards.cpu())

    def _covariate_values(self, target: frozenset[str], rows: Tensor) -> Tensor:
        """Return the values of the covariates in observations: in [0, 1] if their domain is typed, else native."""
        typed = self._task.codec.domains.typed
        columns = {name: rows[:, self._task.nodes.index(name)] for name in self._covariates(target)}
        values = [typed[name].to_unit(column) if name in typed else column for name, column in columns.items()]
        return torch.stack(values, -1)


class EffectNetwork(GPNetwork):
    """A network for many values of one target set.

    A node that does not depend on these values is computed once for all of them, with shape ``1 x s`` for s samples.
    """

    # Condensing the root takes longer than it saves in so few predictions.
    condense = False
    skips = True
    # The defaults of CBO were chosen without additive kernels.
    additive = False

    def node_inputs(self, node: str, values: Mapping[str, Tensor], columns: Sequence[Tensor]) -> Tensor:
        is_root = not (self.parents[node] or self.actions[node])
        return columns[0].new_zeros((1, 1, 1)) if is_root else super().node_inputs(node, values, columns)


class RewardGP(GaussianProcess):
    """GP of the residuals of rewards about a causal prior, with mean zero.

    The prior of the noise is :func:`~cbo_gym.agents.gp.noise.usual_noise`; its mode is the estimate of the
    noise's variance from observations, if there is one.

    Args:
        name: name of the reward or the target set, for error messages.
        dim: number of inputs.
        covariance: function of the number of inputs that makes the kernel.
        device: torch device.
        noise_std: known standard deviation of the rewards' noise; None to learn it.
        categories: input that is a category -> the number of categories.

    Attributes:
        unit: scale of the rewards, above 0; the priors of all variances are relative to it. The agent estimates it from
            the rewards of all sets, so that two similar rewards of one set do not make the model overconfident.
        expected_noise: estimate of the standard deviation of the rewards' noise from observations; None without one.
        rewards: the rewards, ``(n,)``: the outputs of the GP plus the prior means.
    """

    centred = True
    #: Index of the input that is a standard deviation of the prior, in units of the rewards.
    deviation: int

    def __init__(
        self,
        name: str,
        dim: int,
        covariance: Callable[[int], Any],
        device: str,
        noise_std: float | None,
        categories: Mapping[int, int],
    ) -> None:
        super().__init__(name, dim, noise_std=noise_std, covariance=covariance, categories=categories, device=device)
        self.unit = 1.0
        self.expected_noise: float | None = None
        self.rewards = self.outputs

    @property
    def noise_of_rewards(self) -> float:
        """Standard deviation of the rewards' noise, in their units; without data the median of its prior."""
        if len(self):
            return float(self.noise_scale)
        if self.noise_std is not None:
            return self.noise_std
        return math.sqrt(USUAL_NOISE) * self.unit if self.expected_noise is None else self.expected_noise

    def joint(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return :meth:`GaussianProcess.joint`, without data in units of the rewards."""
        if not len(self):
            self._standardise()
        return super().joint(points)

    def _standardise(self) -> None:
        self._location, self._scale = self.outputs.new_tensor(0.0), self.outputs.new_tensor(self.unit)
        self._span[self.deviation] = self.unit
        if (share := self._expected_share) is not None and isinstance(self.noise_model, NoiseLevel):
            self.noise_model.expect(share, TRUST)

    @property
    def _expected_share(self) -> float | None:
        """Share of noise in the rewards' variance, as estimated from observations; None without an estimate."""
        if self.expected_noise is None:
            return None
        return min(max((self.expected_noise / self.unit) ** 2, MIN_VARIANCE), 1.0)

    def _make_noise(self) -> Noise:
        return super()._make_noise() if self.noise_std is not None else usual_noise()


class GPQuery(NamedTuple):
    """Points at which to predict with a GP of residuals.

    Attributes:
        gp: the GP.
        inputs: its inputs at the points, ``n x d``.
        means: prior means, to which its outputs are added, ``(n,)``.
    """

    gp: RewardGP
    inputs: Tensor
    means: Tensor


class CausalGP(RewardGP):
    """GP of the reward under do(x): prior mean m(x), prior covariance ``v RBF(x, x') + sigma(x) sigma(x')``.

    The last input is sigma(x). The other arguments are those of :class:`RewardGP`.

    Args:
        dim: number of target variables.
        effect: returns m and sigma.

    References:
        Aglietti, Lu, Paleyes & Gonzalez (2020), Causal Bayesian optimization, sec. 3.1.
    """

    deviation = -1

    def __init__(
        self,
        name: str,
        dim: int,
        effect: Effect,
        device: str = "cpu",
        noise_std: float | None = None,
        categories: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(name, dim + 1, causal_kernel, device, noise_std, categories)
        self._effect = effect
        self._values = self.inputs[:, :dim]

    def observe(self, values: Tensor, reward: float, error: float = 0.0) -> None:
        """Add the reward of do(values), ``values`` in [0, 1] of shape ``(d,)``."""
        mean, std = self._effect(values[None])
        self._values = torch.cat([self._values, values[None]])
        self.rewards = torch.cat([self.rewards, mean.new_tensor([reward])])
        self.add(torch.cat([values, std]).cpu(), reward - mean.cpu(), error)

    def refresh(self) -> None:
        """Recompute the prior at the data, after ``effect`` has changed."""
        mean, std = self._effect(self._values)
        self.replace(torch.cat([self._values, std[:, None]], -1), self.rewards - mean, self.errors)

    def predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of E[Y | do(values)], each ``(n,)``, for values ``n x d`` in [0, 1].

        ``prior`` is ``effect(values)``, if it was computed before.
        """
        mean, std = prior or self._effect(values)
        if not len(self):
            return mean, (self.unit**2 + std.square()).sqrt()
        residual, spread = self.posterior(torch.cat([values, std[:, None]], -1))
        return mean + residual, spread

    def query(self, values: Tensor) -> GPQuery:
        """Return the GP with its inputs and prior means at values ``n x d``."""
        mean, std = self._effect(values)
        return GPQuery(self, torch.cat([values, std[:, None]], -1), mean)

    def prior_means(self) -> Tensor:
        """Return prior means at the data, shape ``(n,)``."""
        return self.rewards - self.outputs

    def means_at_data(self) -> Tensor:
        """Return posterior means at the data, shape ``(n,)``."""
        return self.prior_means() + self.posterior(self.inputs)[0]


def causal_kernel(dim: int) -> Kernel:
    """Return the kernel ``v RBF(x, x') + sigma sigma'`` of inputs (x, sigma); v has a Gamma(2, 1) prior."""
    smooth = Scale(SquaredExponential(dim - 1))
    return Sum(OnColumns(smooth, slice(dim - 1)), OnColumns(Dot(), slice(dim - 1, dim)))


# Cached, because every estimate of an effect needs it.
@lru_cache(maxsize=256)
def can_be_simulated(diagram: CausalDiagram, target: frozenset[str], reward: str) -> bool:
    """Return whether, under do(target), no latent confounder affects the reward or its ancestors, targets excepted."""
    simulated = diagram.mutilate(target).ancestors([reward]) - target
    return not any(pair & simulated for pair in diagram.bidirected)


@lru_cache(maxsize=256)
def adjustment_set(diagram: CausalDiagram, target: frozenset[str], reward: str) -> frozenset[str] | None:
    """Return a minimal set that satisfies the back-door criterion for ``target`` on ``reward``, or None.

    Such a set Z has no descendants of the targets, and it separates the targets from the reward in the diagram without
    the edges out of the targets. ``E[Y | do(x)]`` is then the mean over Z of ``E[Y | x, Z]`` (Pearl, *Causality*, 2009,
    sec. 3.3 and 3.4). If any set is valid, so is the set of all allowed ancestors (van der Zander, Liskiewicz & Textor
    2014, sec. 4). Variables are dropped from this set, causes first, while it still separates.
    """
    without_effects = diagram.without_effects(target)
    chosen = diagram.ancestors(target | {reward}) - diagram.descendants(target) - {reward}
    if not without_effects.m_separated(target, {reward}, chosen):
        return None
    for name in diagram.topological_order:
        if name in chosen and without_effects.m_separated(target, {reward}, chosen - {name}):
            chosen -= {name}
    return chosen
