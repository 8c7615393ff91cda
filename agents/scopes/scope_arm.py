"""ScopeArm: contextual GP-UCB on one policy scope (Krause & Ong 2011), what CoCaBO and CoBO play inside a scope."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.actions.codec import UNSET
from cbo_gym.agents.common.features import BoxFeatures
from cbo_gym.agents.common.search import RAW_SAMPLES, RESTARTS, maximise
from cbo_gym.agents.scopes.warped_gp import WarpedGP
from cbo_gym.agents.surrogates.gp.kernels import ScaledSquaredExponential
from cbo_gym.agents.surrogates.gp.model import GaussianProcess
from cbo_gym.agents.surrogates.gp.noise import usual_noise
from cbo_gym.agents.surrogates.protocols import MakeSurrogate
from cbo_gym.task import Action, ContextualTask

Backend = Literal["plain", "warped", "botorch"]
BACKENDS: dict[str, MakeSurrogate] = {
    "plain": partial(GaussianProcess, covariance=ScaledSquaredExponential, noise=usual_noise),
    "warped": partial(WarpedGP, noise=usual_noise),
    "botorch": GaussianProcess,
}
CONTEXTS = 40  # most contexts over which an arm's value is averaged
CANDIDATES = 128  # values for each variable, among which the best in a context is sought
MOST_CANDIDATES = 512
LATEST = 32  # values played that are among them too


class ScopeArm:
    """A GP from a scope's variables and contexts to the reward, and the values that it takes for best.

    Args:
        task: contextual.
        scope: index of the scope among the task's.
        contexts: those that the values depend on.
        backend: ``"plain"`` (squared exponential), ``"warped"`` (inputs and outputs, after HEBO), or ``"botorch"``
            (BoTorch's present default).
        seed: of its first values and of those among which it seeks the best ones.
        device: torch device.

    Attributes:
        gp: from the variables, then the contexts, to the reward.
        dim: the larger of the numbers of variables and contexts, at least 1.
        rounds: the numbers of the rounds in which it played, from 0.
    """

    def __init__(
        self, task: ContextualTask, scope: int, contexts: Collection[str], backend: Backend, seed: int, device: str
    ) -> None:
        variables = {variable for variable, _ in task.scopes[scope]}
        self.scope = scope
        self.rounds: list[int] = []
        self._members = [place for place, name in enumerate(task.manipulable) if name in variables]
        self._seen = [place for place, name in enumerate(task.contexts) if name in contexts]
        self._count = len(task.manipulable)
        self._device = device
        dim = len(self._members)
        self.dim = max(1, dim, len(self._seen))
        self._features = BoxFeatures(dim)
        count = min(MOST_CANDIDATES, CANDIDATES * dim)
        engine = SobolEngine(max(1, dim), scramble=True, seed=seed)
        self._spread = engine.draw(max(1, count), dtype=torch.float64)[:, :dim].to(device)
        inputs = max(1, dim + len(self._seen))  # without any there is a constant one
        name = f"{task.reward} in scope {scope}"
        self.gp = BACKENDS[backend](name, inputs, rescale=range(dim, inputs), device=device)

    def act(self, context: np.ndarray, width: float, seed: int) -> Action:
        """The action with the highest bound, ``width`` standard deviations above the mean, by a search from ``seed``.

        ``context`` has all of the task's context variables, shape ``(k,)``.
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
                raw_samples=min(RAW_SAMPLES, 256 * len(self._members)),
                restarts=min(RESTARTS, 4 * len(self._members)),
                device=self._device,
            )
        return self._action(values)

    def observe(self, action: Action, context: np.ndarray, reward: float, round_: int) -> None:
        """Learn from a round in which the arm was played."""
        self.gp.add(self._inputs(self._values(action), context).cpu(), reward)
        self.gp.update()
        self.rounds.append(round_)

    def first(self) -> Action:
        """The next of some values that fill the box evenly, for the plays before there is a model."""
        return self._action(self._spread[len(self.rounds) % len(self._spread)].cpu().numpy())

    def bound_of(self, action: Action, context: np.ndarray, width: float) -> float:
        """The bound of an action, in its context; without data that of a prior with mean 0 and variance 1."""
        if not self.rounds:
            return width
        with torch.no_grad():
            return float(self.gp.bound(self._inputs(self._values(action)[None], context), width))

    def belief(self, values: np.ndarray, context: np.ndarray) -> np.ndarray:
        """Means and standard deviations, ``2 x n``, of E[Y | x, c] in a context ``(k,)``, once the arm has been played.

        ``values`` are those of the actions, ``n x d``, of all variables that can be set.
        """
        own = torch.as_tensor(values[:, self._members], device=self._device)
        with torch.no_grad():
            return torch.stack(self.gp.posterior(self._inputs(own, context))).cpu().numpy()

    def highest_bounds(self, contexts: np.ndarray, width: float) -> np.ndarray:
        """The highest bound in each of at most ``CONTEXTS`` contexts, evenly spaced among those given, ``(n, k)``."""
        places = np.linspace(0, len(contexts) - 1, min(len(contexts), CONTEXTS)).round().astype(int)
        values = torch.cat([self._spread, self.gp.inputs[-LATEST:, : len(self._members)]])
        points = torch.stack([self._inputs(values, context) for context in contexts[places]])
        with torch.no_grad():
            return self.gp.bound(points, width).amax(-1).cpu().numpy()

    def estimates(self, context: np.ndarray | None = None) -> np.ndarray:
        """Estimates of E[Y | x, c] for what was played, in the contexts of then or all in ``context``."""
        inputs = self.gp.inputs
        if context is not None:
            inputs = self._inputs(inputs[:, : len(self._members)], context)
        with torch.no_grad():
            return self.gp.bound(inputs, 0.0).cpu().numpy()

    def recommend(self, context: np.ndarray) -> Action:
        """Of the values played, those with the best estimate in ``context``."""
        best = int(np.argmax(self.estimates(context)))
        return self._action(self.gp.inputs[best, : len(self._members)].cpu().numpy())

    def _values(self, action: Action) -> Tensor:
        return torch.as_tensor(np.asarray(action["values"])[self._members], device=self._device)

    def _inputs(self, values: Tensor, context: np.ndarray) -> Tensor:
        """GP inputs of values ``... x dim`` in one context."""
        seen = torch.as_tensor(context[self._seen], dtype=torch.float64, device=self._device)
        if not len(self._members) and not len(self._seen):
            seen = seen.new_zeros(1)
        return torch.cat([values, seen.expand(*values.shape[:-1], -1)], -1)

    def _action(self, values: np.ndarray) -> Action:
        full = np.full(self._count, UNSET)
        full[self._members] = values
        return {"scope": np.int64(self.scope), "values": full}
