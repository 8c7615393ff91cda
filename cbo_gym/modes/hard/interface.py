"""Hard mode: the action chooses a set of variables, the target set, and the values to which they are set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cbo_gym.actions import Domains, LimitedDict, Limits
from cbo_gym.actions.codec import Actions
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.choice import ChoiceInterface, set_name
from cbo_gym.task import HardTask, Mode


class HardInterface(ChoiceInterface):
    """Actions that set a target set to values."""

    mode = Mode.HARD
    trial_description = "some variables, each to a value"
    random_rounds_of = "a target set"
    task_class = HardTask
    key = "target"
    several_objectives = True
    takes_limits = True
    default_initial_data = (10, 2)

    def variable_sets(self) -> Sequence[frozenset[str]]:
        if not any(self.problem.targets):
            raise ArgumentError(
                f"{self.problem.name} lists no target sets, so it has no hard mode; name variables that can be set, "
                "with their bounds, as manipulable of a problem or as settable of a study"
            )
        limits = Limits(self.problem.limits, Domains(self.manipulable))
        if impossible := [set_name(target) for target in self.problem.targets if target and not limits.can_set(target)]:
            raise ArgumentError(
                f"{self.problem.name}: the limits {list(limits.statements)} do not allow to set {impossible[0]}; leave "
                "it out of the targets"
            )
        return self.problem.targets

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return by default 2 random interventions on each target set; on the smallest ones if the graph is hidden.

        Without the empty set there are no observational rounds.
        """
        count = 2 if random is None else random
        targets = self.problem.targets
        is_known = self.knowledge.diagram or self.knowledge.candidates
        max_size = max(map(len, targets)) if is_known else min(len(target) for target in targets if target)
        empty = [index for index, target in enumerate(targets) if not target]
        others = [index for index, target in enumerate(targets) if 1 <= len(target) <= max_size]
        chosen = np.concatenate([np.repeat(empty, observational), np.repeat(others, count)]).astype(int)
        if isinstance(self.action_space, LimitedDict):
            limits, memberships = self.action_space.limits, self.action_space.memberships[chosen]
            return {"target": chosen, "values": limits.sample_each(memberships, rng)}
        return {"target": chosen, "values": self.domains.from_uniform(rng.random((len(chosen), len(self.domains))))}

    def task_fields(self) -> dict[str, Any]:
        return {**super().task_fields(), "targets": tuple(self.problem.targets)}
