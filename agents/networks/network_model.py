"""GPNetworkModel: a GPNetwork as a BoTorch model, for BoTorch's acquisition functions and optimisers.

A sample draws the GP of one node after another, jointly at the points of a set, with the draws of the parents as inputs
(Astudillo & Frazier 2021, Bayesian optimization of function networks, sec. 3). With fixed base samples it is a smooth
function of the actions::

    env = gym.make("CBO/Dropwave-v0")
    model = GPNetworkModel.of_task(make_task(env, seed=0))
    best = model.posterior(model.network.inputs.unsqueeze(-2)).mean.max()
    acquisition = qLogExpectedImprovement(model, best)
    box = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, model.network.features.input_dim)
    actions, value = optimize_acqf(acquisition, box, q=2, num_restarts=4, raw_samples=64)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from botorch.models.model import Model
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from cbo_gym.agents.gp.outputs import SampledPosterior
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.task import Action, HardTask, SoftTask, Task

# Number of Sobol samples for a posterior's mean and variance.
MOMENT_SAMPLES = 256


class GPNetworkModel(Model):
    """The nodes of a :class:`~cbo_gym.agents.networks.gp_network.GPNetwork` as the outputs of a BoTorch model.

    Its points are the network's features of actions: in soft mode the action in [0, 1], in hard mode the values of the
    manipulable variables and then 0/1 membership of the target set. Fantasies and input transforms are not supported.

    Args:
        network: the network of GPs. Data that the network learns later change the model too.
        outputs: the modelled nodes that are outputs; None for the reward alone.

    Attributes:
        network: the network.
        outputs: names of the nodes, in the order of the outputs.

    Raises:
        ArgumentError: if an output is not a modelled node, or ``outputs`` is empty.
    """

    def __init__(self, network: GPNetwork, outputs: Sequence[str] | None = None) -> None:
        super().__init__()
        self.network = network
        self.outputs = (network.task.reward,) if outputs is None else tuple(outputs)
        if not self.outputs or not set(self.outputs) <= set(network.nodes):
            raise ArgumentError(
                f"outputs must be among {list(network.nodes)}, at least one; given {short_repr(outputs)}"
            )

    @classmethod
    def of_task(cls, task: Task, outputs: Sequence[str] | None = None, device: str = "cpu") -> Self:
        """Return the model of a soft or hard task, with its initial data.

        Args:
            task: a task from :func:`cbo_gym.make_task`.
            outputs: names of the outputs, as for the class.
            device: torch device.

        Raises:
            ArgumentError: if the task has another mode, or ``outputs`` is not as for the class.
        """
        if not isinstance(task, SoftTask | HardTask):
            raise ArgumentError(f"a GP network models soft and hard tasks; {task.env_id} is {task.mode}")
        network = GPNetwork(task, device)
        for past in task.initial_data:
            network.add(past.action, past.observation)
        return cls(network, outputs)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()

    def posterior(
        self,
        X: Tensor,  # noqa: N803  (BoTorch's name)
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> Any:
        """Return the joint distribution of the outputs at sets of q points.

        Args:
            X: ``batch_shape x q x d``.
            output_indices: indices in ``outputs``; None for all.
            observation_noise: False for the functions f without the nodes' noise. Then the reward is E[Y | action] if
                noise enters linearly or not at all. True for outcomes of rounds, in which every node has its own noise
                at every point, known or learned. The mean of these outcomes is E[Y | action].
            posterior_transform: transform of BoTorch that is applied to the posterior; None for none.

        Returns:
            a :class:`NetworkPosterior`.

        Raises:
            ArgumentError: if the number of columns of ``X`` is not ``network.features.input_dim``, or
                ``observation_noise`` is neither True nor False.
        """
        if not isinstance(observation_noise, bool):
            raise ArgumentError(f"observation_noise must be True or False; given {type(observation_noise).__name__}")
        dim = self.network.features.input_dim
        if X.dim() < 2 or X.shape[-1] != dim:
            raise ArgumentError(f"points must have shape batch_shape x q x {dim}; given {tuple(X.shape)}")
        outputs = self.outputs if output_indices is None else [self.outputs[index] for index in output_indices]
        posterior = NetworkPosterior(self.network, X.to(self.network.inputs), outputs, observation_noise)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def subset_output(self, idcs: list[int]) -> GPNetworkModel:
        """Return the model with some of the outputs, on the same network."""
        return type(self)(self.network, [self.outputs[index] for index in idcs])

    def condition_on_observations(self, X: Tensor, Y: Tensor, **_: Any) -> GPNetworkModel:  # noqa: N803
        """Return a new model with further rounds. Its hyper-parameters are refitted if the schedule says so.

        Args:
            X: actions played, ``n x d``.
            Y: values of all modelled nodes, ``n x len(network.nodes)``, in native units.

        Raises:
            ArgumentError: if the shapes do not fit, or no target set has a point's membership.
        """
        nodes, task = self.network.nodes, self.network.task
        if X.dim() != 2 or Y.shape != (len(X), len(nodes)):
            raise ArgumentError(f"give actions n x d and values n x {len(nodes)} of {list(nodes)}; given "
                                f"{tuple(X.shape)} and {tuple(Y.shape)}")  # fmt: skip
        network = deepcopy(self.network)
        for inputs, values in zip(X.detach(), Y.detach().cpu().numpy(), strict=True):
            value_of = dict(zip(nodes, values, strict=True))
            # The network does not use the values of nodes that it does not model.
            node_values = np.array([value_of.get(name, 0.0) for name in task.nodes])
            network.add(self._action(inputs), {"nodes": node_values})
        return type(self)(network, self.outputs)

    def _action(self, inputs: Tensor) -> Action:
        if isinstance(self.network.task, SoftTask):
            return inputs.cpu().double().numpy()
        try:
            return self.network.features.decode(inputs)
        except IndexError:
            raise ArgumentError(f"no target set has the membership of the point {inputs.tolist()}") from None


class NetworkPosterior(SampledPosterior):
    """Joint samples of nodes of a GPNetwork, from one base sample per node, point and sample.

    Args:
        network: the network of GPs.
        inputs: features of actions, ``batch_shape x q x d``.
        outputs: names of the m nodes.
        noisy: whether the noise of noisy nodes is drawn too, from a second base sample each.
    """

    def __init__(self, network: GPNetwork, inputs: Tensor, outputs: Sequence[str], noisy: bool = False) -> None:
        self._network, self._inputs, self._outputs = network, inputs, tuple(outputs)
        self._noisy = network.noisy if noisy else ()
        *batch, self._size, _ = inputs.shape
        numbers = len(network.nodes) + len(self._noisy)
        super().__init__(inputs, [*batch, self._size, len(self._outputs)], [*batch, self._size, numbers])

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Return samples, ``sample_shape x batch_shape x q x m``; the base samples may be the same for all batches."""
        flat = base_samples.reshape(sample_shape.numel(), -1, *self.base_sample_shape[-2:])
        columns = dict(zip(self._columns, flat.transpose(0, 1).unbind(-1), strict=True))
        inputs = self._inputs.reshape(-1, *self._inputs.shape[-2:])
        values = self._network.sample(inputs, columns, self._noise(columns))
        shape = len(inputs), len(flat), self._size
        drawn = torch.stack([values[name].expand(shape) for name in self._outputs], -1)
        return drawn.transpose(0, 1).reshape(self._extended_shape(sample_shape))

    @property
    def _columns(self) -> list[str]:
        return [*self._network.nodes, *(f"noise of {node}" for node in self._noisy)]

    def _noise(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        uniforms = {node: torch.special.ndtr(columns[f"noise of {node}"]) for node in self._noisy}
        return {node: self._network.noise_of(node, column.clamp(1e-9, 1.0 - 1e-9)) for node, column in uniforms.items()}

    @cached_property
    def _moments(self) -> Tensor:
        return SobolQMCNormalSampler(torch.Size([MOMENT_SAMPLES]), seed=0)(self)

    @property
    def mean(self) -> Tensor:
        """Means over fixed Sobol samples, ``batch_shape x q x m``; differentiable."""
        return self._moments.mean(0)

    @property
    def variance(self) -> Tensor:
        """Variances over the same samples, ``batch_shape x q x m``; differentiable."""
        return self._moments.var(0)
