"""Soft mode: the action is the vector of the mechanisms' parameters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium.error import InvalidAction

from cbo_gym.actions import BoxCodec, GridBox, GridCodec, LimitedBox, Limits, SparseBox, SparseCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.reading import as_numbers
from cbo_gym.actions.spaces import ON_GRID, unit_box
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.modes.base.interface import Description, Region
from cbo_gym.modes.base.parametric import ParametricInterface
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Mode, SoftTask


class SoftInterface(ParametricInterface):
    """Actions that are the vector of the mechanisms' parameters."""

    mode = Mode.SOFT
    trial_description = "all parameters"
    several_objectives = True
    takes_limits = True
    takes_mixed_domains = True
    task_class: ClassVar[type[SoftTask]] = SoftTask
    default_initial_data: ClassVar[tuple[int, int | None]] = (0, None)

    def __init__(self, problem: ProblemStatement, *, max_interventions: int | None = None) -> None:
        self.max_interventions = max_interventions
        super().__init__(problem)
        self._action_dim = len(self.domains)
        self._null = [float(a) for a in problem.null_action[: self._action_dim]]
        self._to_native = self.domains.to_native
        self._grid, self._limits = self.codec.grid, self.codec.limits

    def make_codec(self) -> BoxCodec:
        domains = self.require_parameters()
        if self.problem.limits:
            if self.max_interventions is not None:
                raise ArgumentError(
                    f"{self.problem.name} has limits, so that max_interventions must be one of them: 'at most "
                    f"{self.max_interventions} of {', '.join(domains.names)}'"
                )
            return BoxCodec(LimitedBox(Limits(self.problem.limits, domains, self.problem.null_action)), domains)
        if self.max_interventions is None:
            box = unit_box(domains.levels)
            return GridCodec(box, domains) if isinstance(box, GridBox) else BoxCodec(box, domains)
        return SparseCodec(SparseBox(self.problem.null_action, self.max_interventions, domains.levels), domains)

    def decode(self, action: Action) -> Intervention:
        array = as_numbers(action)
        if array.shape != (self._action_dim,):
            raise InvalidAction(f"the action must have shape ({self._action_dim},); given shape {array.shape}")
        # Floats are several times faster than arrays for few numbers.
        point = array.tolist()
        for value in point:
            if not 0.0 <= value <= 1.0:
                raise InvalidAction(f"action[{point.index(value)}] must lie in [0, 1]; given {value}")
        limit = self.max_interventions
        if limit is not None:
            changed = sum(value != null for value, null in zip(point, self._null, strict=True))
            if changed > limit:
                raise InvalidAction(
                    f"at most {limit} coordinates may differ from the null action {self._null}; given {changed}"
                )
        if self._grid is not None:
            for index, value in enumerate(point):
                if self._grid.is_off(index, value):
                    raise InvalidAction(
                        f"action[{index}] must be one of {self._grid.level_names(index)}; given {value}"
                    )
        native = self._to_native(point)
        if self._limits is not None and not self._limits.contains(array):
            broken = self._limits.broken_by(dict(zip(self.domains.names, native, strict=True)))
            raise InvalidAction(f"the action breaks {', '.join(map(repr, broken))}; given {short_repr(point)}")
        return Intervention(native)

    def decode_batch(self, actions: Actions) -> Intervention:
        array = as_numbers(actions)
        if array.ndim != 2 or array.shape[1] != self._action_dim:
            raise InvalidAction(f"the actions must have shape (n, {self._action_dim}); given {array.shape}")
        inside = np.logical_and(array >= 0.0, array <= 1.0).all(axis=1)
        if self.max_interventions is not None:
            inside &= (array != self._null).sum(axis=1) <= self.max_interventions
        if self._grid is not None:
            finite = np.where(np.isfinite(array), array, 0.0)
            inside &= (np.abs(finite - self._grid.nearest(finite)) <= ON_GRID).all(axis=1)
        if self._limits is not None:
            inside &= self._limits.contains(array)
        self.require_inside(inside, "actions[{}]", coordinates=array)
        return Intervention(self._to_native(array.T))

    def describe(self, intervention: Intervention) -> Description:
        return self.named_values(intervention.soft)

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return by default 2q + 1 random interventions."""
        count = 2 * self._action_dim + 1 if random is None else random
        if self._limits is not None:
            null = self._limits.nearest(np.tile(self._null, (observational, 1)))
            return np.concatenate([null, self._limits.draw(count, rng)])
        points = self.domains.from_uniform(rng.random((count, self._action_dim)))
        if isinstance(self.action_space, SparseBox):
            chosen = rng.random(points.shape).argsort(axis=-1) < self.action_space.max_interventions
            points = np.where(chosen, points, self._null)
        return np.concatenate([np.tile(self._null, (observational, 1)), points])

    def regions(self) -> list[Region]:
        return [Region(self._action_dim, self.codec.to_action)]

    def task_fields(self) -> dict[str, Any]:
        return {
            **super().task_fields(),
            "null_action": tuple(self.problem.null_action)[: self._action_dim],
            "max_interventions": self.max_interventions,
            "composition": self.problem.composition,
        }
