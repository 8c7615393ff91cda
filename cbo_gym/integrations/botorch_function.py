"""botorch_function: an environment as a test function of BoTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from botorch.test_functions import SyntheticTestFunction
from torch import Tensor

from cbo_gym._util.arguments import MAX_NOISE_SEED, seed_number
from cbo_gym.envs.oracle import oracle_of
from cbo_gym.errors import ArgumentError
from cbo_gym.integrations.opening import open_env, require_function
from cbo_gym.scm import Floats, Intervention


class CausalTestFunction(SyntheticTestFunction):
    """The reward as a function of an action's point in the unit box of the environment's codec, to be maximised.

    ``function(X)`` plays a round for each point, each with new noise, and ``function(X, noise=False)`` or
    ``evaluate_true(X)`` gives E[Y | action] as ``evaluate`` does: exactly, or by quasi-Monte Carlo. Points have shape
    ``batch_shape x dim`` and values ``batch_shape``. Values have no gradient. Noise comes from ``seed``, not from
    torch's global generator. It may enter anywhere in the system, so there is no ``noise_std``.

    Args:
        env: environment id, also with parameters, or an environment, which does not change.
        seed: seed of the noise, from 0 to 2**128 - 1.
        negate: whether to return the negative, to be minimised.
        env_parameters: more keyword arguments of the environment.

    Attributes:
        dim: Dimension of the box.
        bounds: Zeros and ones, ``2 x dim``.

    Raises:
        ArgumentTypeError: if ``env`` is neither an id nor an environment.
        ArgumentError: for an unknown environment, bad parameters, or the contextual mode, whose best action depends on
            the context.
    """

    _is_minimization_by_default = False
    _check_grad_at_opt = False

    def __init__(self, env: Any, seed: int = 0, negate: bool = False, **env_parameters: Any) -> None:
        environment = open_env(env, env_parameters)
        self._dynamics = environment.dynamics
        require_function(self._dynamics)
        self._oracle = oracle_of(environment)
        self._rng = np.random.default_rng(seed_number(seed, at_most=MAX_NOISE_SEED))
        self.dim = self._dynamics.codec.dim
        self._bounds = [(0.0, 1.0)] * self.dim
        self.continuous_inds = list(range(self.dim))
        super().__init__(negate=negate)

    @property
    def optimal_value(self) -> float:
        """The best E[Y | action]: the registered one, or else the result of a search at the first use."""
        value = self._oracle.optimum.value
        return -value if self.negate else value

    @property
    def optimizers(self) -> Tensor:
        """A point that reaches the optimal value, ``1 x dim``."""
        return torch.as_tensor(self._dynamics.codec.to_point(self._oracle.optimum.action))[None]

    def forward(self, X: Tensor, noise: bool = True) -> Tensor:  # noqa: N803  (BoTorch's name)
        """Return rewards of rounds, or expected rewards without ``noise``."""
        if not noise:
            return super().forward(X, noise=False)
        rewards = self._values(X, self._play)
        return -rewards if self.negate else rewards

    def _evaluate_true(self, X: Tensor) -> Tensor:  # noqa: N803
        return self._values(X, lambda intervention, _: self._oracle.mean_of(intervention).value)

    def _play(self, intervention: Intervention, count: int) -> Floats:
        noise = self._dynamics.scm.draw_noise(self._rng, count)
        return self._dynamics.problem.outcomes.reward(self._dynamics.play(noise, intervention))

    def _values(self, X: Tensor, rewards: Callable[[Intervention, int], Floats]) -> Tensor:  # noqa: N803
        if X.shape[-1:] != (self.dim,) or not ((X >= 0.0) & (X <= 1.0)).all():
            raise ArgumentError(f"points must have shape batch_shape x {self.dim} and lie in [0, 1]; given {X}")
        points = X.detach().cpu().double().reshape(-1, self.dim).numpy()
        if not len(points):
            return X.new_empty(X.shape[:-1])
        intervention = self._dynamics.decode_batch(self._dynamics.codec.to_action(points))
        values = np.broadcast_to(rewards(intervention, len(points)), len(points))
        return torch.tensor(values).to(X).reshape(X.shape[:-1])


def botorch_function(env: Any, seed: int = 0, negate: bool = False, **env_parameters: Any) -> CausalTestFunction:
    """Return an environment as a test function of BoTorch.

    Example::

        function = cbo_gym.botorch_function("CBO/Alpine2-v0")
        regret = function.optimal_value - function(torch.rand(8, function.dim), noise=False)

    Arguments and errors are those of :class:`CausalTestFunction`.
    """
    return CausalTestFunction(env, seed, negate, **env_parameters)
