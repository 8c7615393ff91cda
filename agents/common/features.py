"""Conversions between the actions of a task, the points that a search moves, and the inputs of a GP.

A *search point* is a vector in [0, 1]: the values of the action and, if the action also chooses which coordinates it
sets, a 0/1 membership of each coordinate. The values of coordinates that are not members have no effect on the GP
inputs, so their gradient is zero. The gradient of the membership is zero too: a gradient ascent keeps the membership
that it started with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.actions import BoxCodec, ChoiceCodec, GridBox, GridCodec, SparseBox, SparseCodec
from cbo_gym.actions.codec import UNSET
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Action, Task

# Standard deviation of a small perturbation of a value.
PERTURBATION = 0.05
# Mean number of values that a large perturbation redraws.
MEAN_REDRAWN = 2


class ActionFeatures(ABC):
    """The search points of the actions of one task, and their GP inputs. All tensors are float64.

    Attributes:
        search_dim: length of a search point.
        input_dim: number of GP inputs.
    """

    search_dim: int
    input_dim: int

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return about ``count`` random search points, quasi-random in their values; shape ``n x search_dim``."""

    def perturb(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """Return random points around ``points``, of the same shape, that choose the same coordinates.

        Points at even indices are close to the originals in all values. In the others about two values are redrawn as
        well, so that a search can leave a local optimum.
        """
        values = points.shape[-1] - self.membership(points).shape[-1]
        noisy = points[:, :values] + PERTURBATION * torch.randn(
            (len(points), values), dtype=points.dtype, generator=generator
        )
        fresh = torch.rand(noisy.shape, dtype=noisy.dtype, generator=generator)
        redraw = torch.rand(noisy.shape, generator=generator) < MEAN_REDRAWN / max(values, MEAN_REDRAWN)
        redraw[::2] = False
        perturbed = torch.where(redraw, fresh, noisy).clamp(0.0, 1.0)
        return torch.cat([perturbed, points[:, values:]], -1)

    @abstractmethod
    def encode(self, action: Action) -> Tensor:
        """Return the search point of an action, shape ``(search_dim,)``."""

    @abstractmethod
    def decode(self, point: Tensor) -> Action:
        """Return the action of a search point ``(search_dim,)``, clipped to the action space."""

    @abstractmethod
    def inputs(self, points: Tensor) -> Tensor:
        """Return the GP inputs of search points: ``... x search_dim`` to ``... x input_dim``, differentiable."""

    def of_actions(self, actions: Sequence[Action]) -> Tensor:
        """Return the GP inputs of actions, ``n x input_dim``."""
        return self.inputs(torch.stack([self.encode(action) for action in actions]))

    @abstractmethod
    def membership(self, points: Tensor) -> Tensor:
        """Return which coordinates search points choose, boolean, ``... x m``; m is 0 if actions do not choose any."""


class BoxFeatures(ActionFeatures):
    """Soft actions in the unit box that may change any number of coordinates; points and inputs are the action."""

    def __init__(self, dim: int) -> None:
        self.search_dim = self.input_dim = dim

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        return _sobol(count, self.search_dim, generator)

    def encode(self, action: Action) -> Tensor:
        return torch.as_tensor(np.asarray(action, dtype=np.float64))

    def decode(self, point: Tensor) -> Action:
        return np.clip(point.cpu().numpy(), 0.0, 1.0)

    def inputs(self, points: Tensor) -> Tensor:
        return points

    def membership(self, points: Tensor) -> Tensor:
        return points[..., :0] > 0.5


class GridFeatures(BoxFeatures):
    """Soft actions on a grid; the inputs of a search point are the nearest grid point, so their gradient is zero."""

    def __init__(self, space: GridBox) -> None:
        super().__init__(space.dim)
        self._steps = space.levels - 1

    def decode(self, point: Tensor) -> Action:
        return self.inputs(point).clamp(0.0, 1.0).cpu().numpy()

    def inputs(self, points: Tensor) -> Tensor:
        return (points * self._steps).round() / self._steps


class SparseFeatures(ActionFeatures):
    """Soft actions that may differ from the null action in a limited number of coordinates."""

    def __init__(self, space: SparseBox) -> None:
        self.input_dim = len(space.null)
        self.search_dim = 2 * self.input_dim
        self._null = torch.tensor(space.null, dtype=torch.float64)
        self._limit = space.max_interventions

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        values = _sobol(count, self.input_dim, generator)
        ranks = torch.rand(values.shape, generator=generator).argsort(-1).argsort(-1)
        return torch.cat([values, (ranks < self._limit).double()], -1)

    def encode(self, action: Action) -> Tensor:
        values = torch.as_tensor(np.asarray(action, dtype=np.float64))
        return torch.cat([values, (values != self._null).double()])

    def decode(self, point: Tensor) -> Action:
        return np.clip(self.inputs(point).cpu().numpy(), 0.0, 1.0)

    def inputs(self, points: Tensor) -> Tensor:
        values = points[..., : self.input_dim]
        return torch.where(self.membership(points), values, self._null.to(points.device))

    def membership(self, points: Tensor) -> Tensor:
        return points[..., self.input_dim :] > 0.5


class ChoiceFeatures(ActionFeatures):
    """Actions that choose a set of variables and values for them.

    Args:
        choice: key of an action for the index of the chosen set.
        sets: the sets that can be chosen, in the order of their indices.
        variables: the variables, in the order of the action's values.
        searched: the sets that :meth:`draw` chooses; None for all.
    """

    def __init__(
        self,
        choice: str,
        sets: Sequence[frozenset[str]],
        variables: Collection[str],
        searched: Collection[frozenset[str]] | None = None,
    ) -> None:
        self._choice = choice
        self._count = len(variables)
        self.search_dim = self.input_dim = 2 * self._count
        self._sets, self._searched = (
            torch.tensor([[name in chosen for name in variables] for chosen in group])
            for group in (sets, sets if searched is None else searched)
        )

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        points_per_set = -(-count // len(self._searched))
        members = self._searched.double().repeat(points_per_set, 1)
        return torch.cat([_sobol(len(members), self._count, generator), members], -1)

    def encode(self, action: Action) -> Tensor:
        values = torch.as_tensor(np.asarray(action["values"], dtype=np.float64))
        return torch.cat([values, self._sets[int(action[self._choice])].double()])

    def decode(self, point: Tensor) -> Action:
        chosen = (self._sets == self.membership(point).cpu()).all(-1).nonzero()[0, 0]
        values = np.clip(point[: self._count].cpu().numpy(), 0.0, 1.0)
        return {self._choice: np.int64(chosen), "values": values}

    def inputs(self, points: Tensor) -> Tensor:
        members = self.membership(points)
        values = points[..., : self._count].where(members, torch.full_like(points[..., :1], UNSET))
        return torch.cat([values, members.to(points)], -1)

    def membership(self, points: Tensor) -> Tensor:
        return points[..., self._count :] > 0.5


def features_of(task: Task, searched: Collection[frozenset[str]] | None = None) -> ActionFeatures:
    """Return the features of the actions of a soft, adversarial, hard or contextual task.

    Args:
        task: the task.
        searched: the sets that random search points choose, for a hard or contextual task; None for all.

    Raises:
        ArgumentError: if the task has another mode.
    """
    codec = task.codec
    if isinstance(codec, ChoiceCodec):
        return ChoiceFeatures(codec.key, codec.sets, codec.domains.names, searched)
    if isinstance(codec, SparseCodec):
        return SparseFeatures(codec.space)
    if isinstance(codec, GridCodec):
        return GridFeatures(codec.space)
    if isinstance(codec, BoxCodec):
        return BoxFeatures(codec.dim)
    raise ArgumentError(
        f"features exist for soft, adversarial, hard and contextual tasks; {task.env_id} is {task.mode}"
    )


def _sobol(count: int, dim: int, generator: torch.Generator) -> Tensor:
    seed = int(torch.randint(2**31, (1,), generator=generator))
    return SobolEngine(dim, scramble=True, seed=seed).draw(count, dtype=torch.float64)
