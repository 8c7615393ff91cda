"""Conversions between the actions of a task, the points that a search moves, and the inputs of a GP.

A *search point* is a vector in [0, 1]: the values of the action and, if the action also chooses which coordinates it
sets, a 0/1 *membership* of each coordinate. Three kinds of coordinates have a zero gradient, so that only random points
and perturbations move them: values of coordinates that are not members, which have no effect on the GP inputs; the
membership itself; and coordinates with levels, a finite number of allowed values, to which they are rounded before they
enter the GP (Garrido-Merchan & Hernandez-Lobato 2020). Points outside the limits of actions are replaced by points
inside, see :meth:`ActionFeatures.repair`, so that a search only needs to stay in the unit box.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.actions import BoxCodec, ChoiceCodec, Codec, Domains, GridCodec, Limits, SparseCodec
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Action, Task

# Standard deviation of a small perturbation of a value.
PERTURBATION = 0.05
# Mean number of values that a large perturbation redraws.
MEAN_REDRAWN = 2
# Mean number of coordinates with levels that a small perturbation moves to another level.
MEAN_MOVED = 0.5


class Levels:
    """The levels of coordinates: equally spaced values in [0, 1].

    Args:
        levels: number of levels of each coordinate; None if it may have any value.
        categories: the coordinates whose levels have no order.
    """

    def __init__(self, levels: Sequence[int | None], categories: Collection[int] = ()) -> None:
        self._has_levels = torch.tensor([count is not None for count in levels])
        self._steps = torch.tensor([(count or 2) - 1 for count in levels], dtype=torch.float64)
        self._unordered = torch.tensor([index in categories for index in range(len(levels))])

    @classmethod
    def of(cls, domains: Domains) -> Levels | None:
        """Return the levels of domains; None if all are continuous."""
        return cls(domains.levels, domains.category_counts) if any(domains.levels) else None

    def round(self, values: Tensor) -> Tensor:
        """Round values ``... x q`` to the nearest levels."""
        has_levels, steps = self._has_levels.to(values.device), self._steps.to(values.device)
        return torch.where(has_levels, (values * steps).round() / steps, values)

    def from_uniform(self, values: Tensor) -> Tensor:
        """Return values with equally likely levels, from uniform numbers in [0, 1]."""
        return torch.where(
            self._has_levels, (values * (self._steps + 1)).floor().minimum(self._steps) / self._steps, values
        )

    def perturb(self, values: Tensor, noisy: Tensor, generator: torch.Generator) -> Tensor:
        """Return ``noisy`` for continuous coordinates, and for others ``values``, a few of them at another level.

        Categories change at random, other levels by one step.
        """
        does_move = torch.rand(values.shape, generator=generator) < MEAN_MOVED / int(self._has_levels.sum())
        uniform = torch.rand(values.shape, dtype=values.dtype, generator=generator)
        stepped = self.round(values) + torch.where(uniform < 0.5, -1.0, 1.0) / self._steps
        moved = torch.where(self._unordered, self.from_uniform(uniform), stepped)
        return torch.where(self._has_levels, torch.where(does_move, moved, values), noisy)


class ActionFeatures(ABC):
    """The search points of the actions of one task, and their GP inputs. All tensors are float64.

    Attributes:
        search_dim: length of a search point.
        input_dim: number of GP inputs.
        levels: the levels of the values, which a search point begins with; None if all values are continuous.
        categories: GP input that is a category -> the number of categories; its values are equally spaced in [0, 1].
    """

    search_dim: int
    input_dim: int

    def __init__(self, domains: Domains, codec: Codec | None) -> None:
        self.codec = codec
        self.levels = Levels.of(domains)
        self.categories = domains.category_counts

    @property
    def limits(self) -> Limits | None:
        """The limits of the next action; None without limits."""
        return None if self.codec is None else self.codec.limits

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return about ``count`` random search points, quasi-random in their values; shape ``n x search_dim``.

        Under limits every second point is drawn inside. The others are repaired, which moves most of them to a limit.
        """
        points = self._draw(count, generator)
        return points if self.limits is None else self._limit(points, self.limits, generator)

    @abstractmethod
    def _draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return random search points, regardless of limits."""

    def _limit(self, points: Tensor, limits: Limits, generator: torch.Generator) -> Tensor:
        rng = np.random.default_rng(int(torch.randint(2**31, (1,), generator=generator)))
        members = self._members(points).numpy()
        values = points[:, : members.shape[-1]].clone()
        values[1::2] = torch.as_tensor(limits.sample_each(members[1::2], rng))
        return self.repair(torch.cat([values, points[:, members.shape[-1] :]], -1))

    def _members(self, points: Tensor) -> Tensor:
        """Return which of the q coordinates actions set, boolean, ``... x q``; all if actions do not choose any."""
        membership = self.membership(points)
        return membership if membership.shape[-1] else torch.ones_like(points, dtype=torch.bool)

    def allows(self, action: Action) -> bool:
        """Return whether the limits allow the set of coordinates that an action chooses, if it chooses one."""
        return True

    def repair(self, points: Tensor) -> Tensor:
        """Move search points to the nearest levels and into the limits; differentiable."""
        if self.levels is None and self.limits is None:
            return points
        members = self._members(points)
        values, others = points[..., : members.shape[-1]], points[..., members.shape[-1] :]
        if self.limits is not None:
            values = self.limits.repair(values, members, torch)
        return torch.cat([values if self.levels is None else self.levels.round(values), others], -1)

    def perturb(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """Return random points around ``points``, of the same shape, that choose the same coordinates.

        Points at even indices stay close to the originals. In the others about two values are drawn again, so that a
        search can leave a local optimum.
        """
        count = points.shape[-1] - self.membership(points).shape[-1]
        values, membership = points[:, :count], points[:, count:]
        noisy = values + PERTURBATION * torch.randn(values.shape, dtype=points.dtype, generator=generator)
        uniform = torch.rand(noisy.shape, dtype=noisy.dtype, generator=generator)
        redraw = torch.rand(noisy.shape, generator=generator) < MEAN_REDRAWN / max(count, MEAN_REDRAWN)
        redraw[::2] = False
        if self.levels is not None:
            noisy = self.levels.perturb(values, noisy, generator)
            uniform = self.levels.from_uniform(uniform)
        perturbed = torch.cat([torch.where(redraw, uniform, noisy).clamp(0.0, 1.0), membership], -1)
        return perturbed if self.limits is None else self.repair(perturbed)

    @abstractmethod
    def encode(self, action: Action) -> Tensor:
        """Return the search point of an action, shape ``(search_dim,)``."""

    def encode_inside(self, action: Action) -> Tensor:
        """Return the search point of an action, moved inside if the action is outside bounds or limits."""
        return self.repair(self.encode(action).clamp(0.0, 1.0))

    def decode(self, point: Tensor) -> Action:
        """Return the action of a search point ``(search_dim,)``, clipped to the action space."""
        return np.clip(self.inputs(point).cpu().numpy(), 0.0, 1.0)

    def inputs(self, points: Tensor) -> Tensor:
        """Return the GP inputs of search points: ``... x search_dim`` to ``... x input_dim``, differentiable."""
        return self.exact_inputs(self.repair(points))

    @abstractmethod
    def exact_inputs(self, points: Tensor) -> Tensor:
        """Return the GP inputs of points without repair, for past actions that may be outside limits or off levels."""

    def of_actions(self, actions: Sequence[Action]) -> Tensor:
        """Return the GP inputs of actions, ``n x input_dim``."""
        return self.exact_inputs(torch.stack([self.encode(action) for action in actions]))

    def _draw_values(self, count: int, dim: int, generator: torch.Generator) -> Tensor:
        seed = int(torch.randint(2**31, (1,), generator=generator))
        values = SobolEngine(dim, scramble=True, seed=seed).draw(count, dtype=torch.float64)
        return values if self.levels is None else self.levels.from_uniform(values)

    @abstractmethod
    def membership(self, points: Tensor) -> Tensor:
        """Return which coordinates search points choose, boolean, ``... x m``; m is 0 if actions do not choose any."""


class BoxFeatures(ActionFeatures):
    """Soft actions in the unit box that may change any number of coordinates; points and inputs are the action."""

    def __init__(self, domains: Domains, codec: Codec | None = None) -> None:
        super().__init__(domains, codec)
        self.search_dim = self.input_dim = len(domains)

    def _draw(self, count: int, generator: torch.Generator) -> Tensor:
        return self._draw_values(count, self.search_dim, generator)

    def encode(self, action: Action) -> Tensor:
        return torch.as_tensor(np.asarray(action, dtype=np.float64))

    def exact_inputs(self, points: Tensor) -> Tensor:
        return points

    def membership(self, points: Tensor) -> Tensor:
        return points[..., :0] > 0.5


class GridFeatures(BoxFeatures):
    """Soft actions of an adversarial task, in which all coordinates have levels, even those with interval domains."""

    def __init__(self, codec: GridCodec) -> None:
        super().__init__(codec.domains, codec)
        self._grid = Levels(codec.space.levels)

    def exact_inputs(self, points: Tensor) -> Tensor:
        return self._grid.round(points)


class SparseFeatures(ActionFeatures):
    """Soft actions that may differ from the null action in a limited number of coordinates.

    Args:
        codec: the codec of the actions.
        null: the null action.
        max_changes: largest number of coordinates that differ; None if the codec's limits restrict it.
    """

    def __init__(self, codec: Codec, null: Sequence[float] | np.ndarray, max_changes: int | None) -> None:
        super().__init__(codec.domains, codec)
        self.input_dim = len(null)
        self.search_dim = 2 * self.input_dim
        self._null = torch.as_tensor(np.asarray(null, dtype=np.float64))
        self._max_changes = max_changes

    def _draw(self, count: int, generator: torch.Generator) -> Tensor:
        values = self._draw_values(count, self.input_dim, generator)
        if self._max_changes is None:
            assert self.limits is not None
            rng = np.random.default_rng(int(torch.randint(2**31, (1,), generator=generator)))
            members = torch.as_tensor(np.array([self.limits.draw_members(rng) for _ in values]))
        else:
            ranks = torch.rand(values.shape, generator=generator).argsort(-1).argsort(-1)
            members = ranks < self._max_changes
        return torch.cat([values, members.double()], -1)

    def encode(self, action: Action) -> Tensor:
        values = torch.as_tensor(np.asarray(action, dtype=np.float64))
        return torch.cat([values, (values != self._null).double()])

    def encode_inside(self, action: Action) -> Tensor:
        point = self.encode(action).clamp(0.0, 1.0)
        members = self.membership(point).numpy()
        if self.limits is None:
            assert self.codec is not None
            if members.sum() > (self._max_changes or self.input_dim):
                members = self.codec.to_action(self.exact_inputs(point).numpy()) != self._null.numpy()
        elif not self.limits.can_change(members):
            members = self.limits.choose_members(self.exact_inputs(point).numpy())
        return self.repair(torch.cat([point[: self.input_dim], torch.as_tensor(members).to(point)]))

    def exact_inputs(self, points: Tensor) -> Tensor:
        values = points[..., : self.input_dim]
        return torch.where(self.membership(points), values, self._null.to(points.device))

    def membership(self, points: Tensor) -> Tensor:
        return points[..., self.input_dim :] > 0.5


class ChoiceFeatures(ActionFeatures):
    """Actions that choose a set of variables and values for them.

    Args:
        codec: the codec of the actions.
        searched: the sets that :meth:`draw` chooses; None for all.
    """

    def __init__(self, codec: ChoiceCodec, searched: Collection[frozenset[str]] | None = None) -> None:
        super().__init__(codec.domains, codec)
        self._choice, self._names = codec.key, codec.sets
        self._count = len(codec.domains)
        self._unset = torch.tensor(codec.domains.unset, dtype=torch.float64)
        self.search_dim = self.input_dim = 2 * self._count
        self._sets, self._searched = (
            torch.tensor([[name in chosen for name in codec.domains.names] for chosen in group])
            for group in (codec.sets, codec.sets if searched is None else searched)
        )

    def _draw(self, count: int, generator: torch.Generator) -> Tensor:
        searched = self._searched
        if (limits := self.limits) is not None:
            # If the limits of the next action exclude all the searched sets, search all allowed ones.
            allowed = [row for row in searched if self._is_allowed(row, limits)]
            searched = torch.stack(allowed or [row for row in self._sets if self._is_allowed(row, limits)])
        members = searched.double().repeat(math.ceil(count / len(searched)), 1)
        return torch.cat([self._draw_values(len(members), self._count, generator), members], -1)

    def _is_allowed(self, members: Tensor, limits: Limits) -> bool:
        return limits.can_set([name for name, is_set in zip(limits.domains.names, members, strict=True) if is_set])

    def allows(self, action: Action) -> bool:
        limits = self.limits
        return limits is None or limits.can_set(self._names[int(action[self._choice])])

    def encode(self, action: Action) -> Tensor:
        values = torch.as_tensor(np.asarray(action["values"], dtype=np.float64))
        return torch.cat([values, self._sets[int(action[self._choice])].double()])

    def decode(self, point: Tensor) -> Action:
        index = (self._sets == self.membership(point).cpu()).all(-1).nonzero()[0, 0]
        point = point if self.levels is None and self.limits is None else self.inputs(point)
        values = np.clip(point[: self._count].cpu().numpy(), 0.0, 1.0)
        return {self._choice: np.int64(index), "values": values}

    def exact_inputs(self, points: Tensor) -> Tensor:
        members = self.membership(points)
        values = points[..., : self._count].where(members, self._unset.to(points))
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
        return ChoiceFeatures(codec, searched)
    if isinstance(codec, SparseCodec):
        return SparseFeatures(codec, codec.space.null, codec.space.max_interventions)
    if isinstance(codec, GridCodec) and codec.domains.is_plain:
        return GridFeatures(codec)
    if isinstance(codec, BoxCodec):
        if codec.limits is not None and codec.limits.restricts_changes:
            return SparseFeatures(codec, codec.limits.null or (), None)
        return BoxFeatures(codec.domains, codec)
    raise ArgumentError(
        f"features exist for soft, adversarial, hard and contextual tasks; {task.env_id} is {task.mode}"
    )
