"""ScopeArm: contextual GP-UCB on one policy scope (Krause & Ong 2011), what CoCaBO and CoBO play inside a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from cbo_gym.actions.codec import UNSET
from cbo_gym.agents.surrogates.gp import GaussianProcess
from cbo_gym.agents.surrogates.kernels import ScaledMatern
from cbo_gym.agents.surrogates.warped_gp import WarpedGP
from cbo_gym.agents.toolbox.features import BoxFeatures
from cbo_gym.agents.toolbox.search import RAW_SAMPLES, RESTARTS, maximise
from cbo_gym.task import Action, ContextualTask

Backend = Literal["warped", "plain"]
BACKENDS: dict[str, Callable[..., GaussianProcess]] = {
    "warped": WarpedGP,
    "plain": partial(GaussianProcess, covariance=ScaledMatern),
}
RANDOM_PLAYS = 8  # of an arm at first


class ScopeArm:
    """A GP from a scope's variables and contexts to the reward, and the values that it takes for best.

    Args:
        task: contextual.
        scope: index of the scope among the task's.
        contexts: those that the values depend on.
        backend: ``"warped"`` (inputs and outputs, after HEBO) or ``"plain"`` (Matern 5/2).
        device: torch device.

    Attributes:
        gp: from the variables, then the contexts, to the reward.
        dim: the larger of the numbers of variables and contexts, at least 1.
        is_new: whether its next play is one of the first few, which are random.
        rounds: the numbers of the rounds in which it played, from 0.
    """

    def __init__(
        self, task: ContextualTask, scope: int, contexts: Collection[str], backend: Backend, device: str
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
        inputs = max(1, dim + len(self._seen))  # without any there is a constant one
        name = f"{task.reward} in scope {scope}"
        self.gp = BACKENDS[backend](name, inputs, rescale=range(dim, inputs), device=device)

    def act(self, context: np.ndarray, width: float, seed: int) -> Action:
        """The action with the highest bound, ``width`` standard deviations above the mean; random while the arm is new.

        Args:
            context: of all of the task's context variables, shape ``(k,)``.
            width: at least 0.
            seed: of the search.
        """
        if self.is_new:
            return self._action(np.random.default_rng(seed).random(len(self._members)))

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
        values = torch.as_tensor(np.asarray(action["values"])[self._members], device=self._device)
        self.gp.add(self._inputs(values, context).cpu(), reward)
        self.gp.update()
        self.rounds.append(round_)

    @property
    def is_new(self) -> bool:
        return len(self.rounds) < RANDOM_PLAYS

    def average_bound(self, contexts: np.ndarray, width: float) -> float:
        """The average bound at the points played, levelled to other contexts than those that the arm met.

        What a ridge regression of the bounds on their contexts tells about the difference of both means is added.

        Args:
            contexts: of all of the task's context variables, shape ``(n, k)``.
            width: of the bounds, in standard deviations.
        """
        points = self.gp.inputs
        with torch.no_grad():
            bounds = self.gp.bound(points, width).cpu().numpy()
        dim = len(self._members)
        own, other = points[:, dim : dim + len(self._seen)].cpu().numpy(), contexts[:, self._seen]
        unit = other.std(axis=0) + 1e-12
        scaled = (own - own.mean(axis=0)) / unit
        slope = np.linalg.solve(scaled.T @ scaled + np.eye(scaled.shape[1]), scaled.T @ (bounds - bounds.mean()))
        return float(bounds.mean() + ((other.mean(axis=0) - own.mean(axis=0)) / unit) @ slope)

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
