"""ScopeArm: contextual GP-UCB on one policy scope (Krause & Ong 2011), for CoCaBO and CoBO."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.actions import Domains
from cbo_gym.actions.domains import UNSET
from cbo_gym.agents.common.features import BoxFeatures
from cbo_gym.agents.common.search import DEFAULT_EFFORT, Effort, maximise
from cbo_gym.agents.gp.algebra import Scale
from cbo_gym.agents.gp.kernels import Kernel, SquaredExponential
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.noise import usual_noise
from cbo_gym.agents.gp.protocols import MakeSurrogate
from cbo_gym.agents.scopes.warped_gp import WarpedGP
from cbo_gym.task import Action, ContextualTask


def short_kernel(dim: int) -> Kernel:
    """Return ``v RBF(x)``, with a prior that expects short lengthscales."""
    return Scale(SquaredExponential.with_gamma_prior(dim))


Backend = Literal["plain", "warped", "botorch"]
BACKENDS: dict[str, MakeSurrogate] = {
    "plain": partial(GaussianProcess, covariance=short_kernel, noise=usual_noise),
    "warped": partial(WarpedGP, noise=usual_noise),
    "botorch": GaussianProcess,
}
# Largest number of contexts over which an arm's value is averaged.
MAX_CONTEXTS = 40
# Number of candidates for each variable, and in all, among which the highest bound in a context is searched.
CANDIDATES, MAX_CANDIDATES = 128, 512
# Number of the last played values that are candidates too.
LATEST = 32


class ScopeArm:
    """A GP from a scope's variables and contexts to the reward, and the search of values with the highest bound.

    Args:
        task: contextual task.
        scope: index of the scope in ``task.scopes``.
        contexts: contexts on which the values depend.
        backend: kind of GP, as for CoCaBO.
        seed: seed of the first values and of the candidates.
        device: torch device.

    Attributes:
        gp: GP of the reward; its inputs are the variables, then the contexts.
        dim: the larger of the numbers of variables and contexts, at least 1.
        rounds: indices in the history of the rounds in which the arm was played.
    """

    def __init__(
        self, task: ContextualTask, scope: int, contexts: Collection[str], backend: Backend, seed: int, device: str
    ) -> None:
        variables = {variable for variable, _ in task.scopes[scope]}
        self.scope = scope
        self.rounds: list[int] = []
        self._members = [column for column, name in enumerate(task.manipulable) if name in variables]
        self._context_columns = [column for column, name in enumerate(task.contexts) if name in contexts]
        self._count = len(task.manipulable)
        self._device = device
        dim = len(self._members)
        self.dim = max(1, dim, len(self._context_columns))
        self._features = BoxFeatures(Domains([(0.0, 1.0)] * dim))
        count = min(MAX_CANDIDATES, CANDIDATES * dim)
        engine = SobolEngine(max(1, dim), scramble=True, seed=seed)
        self._candidates = engine.draw(max(1, count), dtype=torch.float64)[:, :dim].to(device)
        # With neither variables nor contexts, the GP has a constant input.
        inputs = max(1, dim + len(self._context_columns))
        name = f"{task.reward} in scope {scope}"
        self.gp = BACKENDS[backend](name, inputs, rescale=range(dim, inputs), device=device)

    def act(self, context: np.ndarray, width: float, seed: int) -> Action:
        """Return the action with the highest bound, ``width`` standard deviations above the mean.

        ``context`` has all of the task's context variables, shape ``(k,)``; ``seed`` is that of the search.
        """

        def bound(values: Tensor) -> Tensor:
            return self.gp.bound(self._inputs(values, context), width).squeeze(-1)

        values = np.zeros(0)
        if self._members:
            order = np.argsort(-self.estimates(context), kind="stable")
            played = list(self.gp.inputs[order, : len(self._members)].cpu().numpy())
            values = maximise(
                bound,
                self._features,
                played,
                seed=seed,
                effort=Effort(
                    raw_samples=min(DEFAULT_EFFORT.raw_samples, 256 * len(self._members)),
                    restarts=min(DEFAULT_EFFORT.restarts, 4 * len(self._members)),
                ),
                device=self._device,
            )
        return self._action(values)

    def observe(self, action: Action, context: np.ndarray, reward: float, round_: int) -> None:
        """Learn from a round in which the arm was played."""
        self.gp.add(self._inputs(self._values(action), context).cpu(), reward)
        self.gp.update()
        self.rounds.append(round_)

    def first_action(self) -> Action:
        """Return the next action of a sequence that fills the box evenly, for the first plays."""
        return self._action(self._candidates[len(self.rounds) % len(self._candidates)].cpu().numpy())

    def bound_of(self, action: Action, context: np.ndarray, width: float) -> float:
        """Return the bound of an action in a context; without data, of a prior with mean 0 and variance 1."""
        if not self.rounds:
            return width
        with torch.no_grad():
            return float(self.gp.bound(self._inputs(self._values(action)[None], context), width))

    def posterior(self, values: np.ndarray, context: np.ndarray) -> np.ndarray:
        """Return means and standard deviations, ``2 x n``, of E[Y | x, c] in a context ``(k,)``, after the first play.

        ``values`` are the values ``n x d`` of all manipulable variables.
        """
        members = torch.as_tensor(values[:, self._members], device=self._device)
        with torch.no_grad():
            return torch.stack(self.gp.posterior(self._inputs(members, context))).cpu().numpy()

    def highest_bounds(self, contexts: np.ndarray, width: float) -> np.ndarray:
        """Return the highest bound in each of at most ``MAX_CONTEXTS`` contexts, evenly spaced among ``(n, k)``."""
        indices = np.linspace(0, len(contexts) - 1, min(len(contexts), MAX_CONTEXTS)).round().astype(int)
        values = torch.cat([self._candidates, self.gp.inputs[-LATEST:, : len(self._members)]])
        points = torch.stack([self._inputs(values, context) for context in contexts[indices]])
        with torch.no_grad():
            return self.gp.bound(points, width).amax(-1).cpu().numpy()

    def estimates(self, context: np.ndarray | None = None) -> np.ndarray:
        """Return estimates of E[Y | x, c] for the values played, in their own contexts or all in ``context``."""
        inputs = self.gp.inputs
        if context is not None:
            inputs = self._inputs(inputs[:, : len(self._members)], context)
        with torch.no_grad():
            return self.gp.bound(inputs, 0.0).cpu().numpy()

    def recommend(self, context: np.ndarray) -> Action:
        """Return the values with the best estimate in ``context`` among those played."""
        best = int(np.argmax(self.estimates(context)))
        return self._action(self.gp.inputs[best, : len(self._members)].cpu().numpy())

    def _values(self, action: Action) -> Tensor:
        return torch.as_tensor(np.asarray(action["values"])[self._members], device=self._device)

    def _inputs(self, values: Tensor, context: np.ndarray) -> Tensor:
        """Return GP inputs of values ``... x dim`` in one context."""
        contexts = torch.as_tensor(context[self._context_columns], dtype=torch.float64, device=self._device)
        if not len(self._members) and not len(self._context_columns):
            contexts = contexts.new_zeros(1)
        return torch.cat([values, contexts.expand(*values.shape[:-1], -1)], -1)

    def _action(self, values: np.ndarray) -> Action:
        all_values = np.full(self._count, UNSET)
        all_values[self._members] = values
        return {"scope": np.int64(self.scope), "values": all_values}
