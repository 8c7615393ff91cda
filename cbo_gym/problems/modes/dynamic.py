"""A problem's data for dynamic mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cbo_gym.actions import Interval
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import ModeData, Problem, require_interval
from cbo_gym.problems.transform import SETS, Transform
from cbo_gym.scm import System


@dataclass(frozen=True)
class Slices(ModeData):
    """The time slices of a system for the dynamic mode of a problem; each slice has the same variables.

    In slice t the variable ``X`` is the system's ``X_t``, t from 0; the system's reward is that of the last slice.

    Args:
        count: the number T of slices.
        names: the variables of a slice in topological order, the reward last.
        manipulable: variable of a slice -> native ``(low, high)`` of its hard interventions.
        targets: the sets of variables that an intervention may set in a slice; one of them is the empty set.
        history: the system from which observational time series are drawn, with the same variables as the problem's.
        measured: number of slices that these series cover, from slice 0 on.
    """

    count: int
    names: Sequence[str]
    manipulable: Mapping[str, Interval]
    targets: Sequence[frozenset[str]]
    history: System
    measured: int

    def check(self, problem: Problem) -> None:
        reward = self.names[-1]
        needed = [f"{name}_{index}" for index in range(self.count) for name in self.names]
        if set(needed) != set(problem.scm.nodes) or problem.scm.reward != f"{reward}_{self.count - 1}":
            raise ArgumentError(
                f"{self.count} slices of {list(self.names)} need the variables {needed}, the last of "
                f"them the reward; the system has {list(problem.scm.nodes)}"
            )
        if set(self.history.nodes) != set(needed) or not 0 <= self.measured <= self.count:
            raise ArgumentError(
                f"the system behind the time series must have the variables {needed}, measured in 0 to "
                f"{self.count} slices; given {list(self.history.nodes)}, measured in {self.measured}"
            )
        for name, domain in self.manipulable.items():
            if name not in self.names[:-1]:
                raise ArgumentError(f"{name!r} cannot be set; choose from {list(self.names[:-1])}")
            require_interval(f"the domain of {name!r}", domain)
        if missing := frozenset().union(*self.targets) - set(self.manipulable):
            raise ArgumentError(f"no domain is given for the targets {sorted(missing)}")
        if frozenset() not in self.targets:
            raise ArgumentError("the empty set must be among the targets of a slice")

    def transform(self, transform: Transform) -> Slices | None:
        # A transform drawn for another mode has no names for the variables of a slice.
        if not transform.names.keys() >= set(self.names):
            return None
        return replace(
            self,
            names=[transform.names[name] for name in self.names],
            manipulable=transform.domains(self.manipulable),
            targets=transform.shuffle([transform.rename(target) for target in self.targets], SETS),
            history=transform.system(self.history, self.history.nodes),
        )
