"""Masked mode: the action is a super arm, the set of base arms whose random signals reach the system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction

from cbo_gym.actions import SuperArmCodec, SuperArmSpace
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.costs import Changed
from cbo_gym.actions.reading import as_numbers
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.interface import Description, Entry, Region
from cbo_gym.modes.base.parametric import MISSING, ParametricInterface, number_format, widest_number
from cbo_gym.modes.base.pricing import Priceable
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.system import Values
from cbo_gym.task import Action, MaskedTask, Mode, Observation


class MaskedInterface(ParametricInterface):
    """Actions that select base arms."""

    mode = Mode.MASKED
    effect_label = "base arm"
    parameters_note = "The super arm is x, 0 or 1 for each base arm."
    unused_label = "not chosen"
    task_class = MaskedTask
    codec: SuperArmCodec

    def __init__(self, problem: ProblemStatement, *, super_arm_size: int | None = None) -> None:
        if (arms := problem.data(SuperArms)) is None:
            raise ArgumentError(f"{problem.name} has no base arms, so it has no masked mode")
        self.arms = arms
        self._signals = tuple(self.arms.exogenous)
        self._signals_of = itemgetter(*self._signals)
        self.super_arm_size = self.arms.size if super_arm_size is None else super_arm_size
        super().__init__(problem)
        self._count = self.scm.action_dim
        self._arms = self.codec.arms

    @property
    def symbols(self) -> Sequence[str]:
        return [f"x{index}" for index in range(self._count)]

    @property
    def coordinate_labels(self) -> Sequence[tuple[str, str]]:
        return [(arm, "0 or 1") for arm in self._arms]

    def make_codec(self) -> SuperArmCodec:
        domains = self.problem.domains
        names = domains.names if domains.named else self.arms.exogenous
        return SuperArmCodec(SuperArmSpace(self.scm.action_dim, self.super_arm_size), domains, names)

    def after(self, nodes: np.ndarray, values: Values) -> Observation:
        exogenous = np.array(self._signals_of(values), ndmin=1)
        return {"nodes": nodes, "exogenous": exogenous if nodes.ndim == 1 else exogenous.T}

    def decode(self, action: Action) -> Intervention:
        array = as_numbers(action)
        if array.shape != (self._count,):
            raise InvalidAction(f"the super arm must have shape ({self._count},); given shape {array.shape}")
        # Floats are several times faster than arrays for few numbers.
        bits: list[float] = array.tolist()
        selected = bits.count(1.0)
        if selected + bits.count(0.0) < self._count:
            index = next(i for i, bit in enumerate(bits) if bit not in (0.0, 1.0))
            raise InvalidAction(f"super_arm[{index}] must be 0 or 1; given {bits[index]}")
        if selected > self.super_arm_size:
            raise InvalidAction(f"a super arm has at most {self.super_arm_size} base arms; given {selected}")
        return Intervention(bits)

    def decode_batch(self, actions: Actions) -> Intervention:
        array = as_numbers(actions)
        if array.ndim != 2 or array.shape[1] != self._count:
            raise InvalidAction(f"the super arms must have shape (n, {self._count}); given {array.shape}")
        inside = ((array == 0.0) | (array == 1.0)).all(axis=1) & (array.sum(axis=1) <= self.super_arm_size)
        self.require_inside(inside, "super arm {}", bits=array)
        return Intervention(tuple(array.T))

    def describe(self, intervention: Intervention) -> Description:
        """Return base arm, named by its parameter or else its signal -> 1 if it was selected, else 0."""
        return dict(zip(self._arms, intervention.soft))  # noqa: B905

    def priceable(self) -> Priceable:
        """Return the base arms, by their own names too."""
        items = super().priceable().items
        names = self.problem.domains.names
        by_arm = {arm: (name,) for arm, name in zip(self.codec.arms, names, strict=True)}
        return Priceable({**items, **by_arm}, [frozenset({name}) for name in names], {}, units=False)

    def changed_items(self, intervention: Intervention) -> Changed:
        """Return the selected base arms."""
        names = self.problem.domains.names
        return {name: (bit != 0.0, 0.0) for name, bit in zip(names, intervention.soft, strict=True)}

    def entry(self, index: int, intervention: Intervention | None, values: Mapping[str, Floats]) -> Entry:
        """Return the base arm's signal if it was selected."""
        name, signal, ends = self._arms[index], self._signals[index], self.arms.signal_range
        # Errors of observation may make a signal negative.
        widest = f"{name} = -{widest_number(*ends)}"
        if intervention is None or intervention.soft[index] == 0.0:
            return Entry(f"{name} {MISSING}", widest, used=False)
        return Entry(f"{name} = {number_format(*ends)(float(np.asarray(values[signal])))}", widest)

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return the empty super arm for observational rounds, and random ones for the others."""
        count = 2 * self._count + 1 if random is None else random
        space = SuperArmSpace(self._count, self.super_arm_size, seed=rng)
        super_arms = [space.sample() for _ in range(count)]
        return np.array([np.zeros(self._count, dtype=np.int8)] * observational + super_arms).reshape(-1, self._count)

    def regions(self) -> list[Region]:
        return []

    def all_actions(self) -> np.ndarray:
        return self.codec.space.all()

    def task_fields(self) -> dict[str, Any]:
        return {
            **super().task_fields(),
            "super_arm_size": self.super_arm_size,
            "signal_range": self.arms.signal_range,
            "signal_family": self.arms.signal_family,
            "components": tuple(self.arms.components),
            "composition": self.problem.composition,
        }
