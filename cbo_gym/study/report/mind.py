"""The beliefs of a study's agent, asked of a copy so that the study stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.study.expectation import Band, expected_rewards
from cbo_gym.study.report.markup import number
from cbo_gym.study.study import Study
from cbo_gym.task import Action


def interval(band: Band, place: int = 0) -> str:
    """``0.81 (0.7 to 0.92)``."""
    low, mean, high = (number(float(part[place])) for part in (band.low, band.mean, band.high))
    return f"{mean} ({low} to {high})"


class Mind:
    """A copy of the study's agent, in contextual mode in the context of the last trial.

    Args:
        study: whose agent it is.

    Attributes:
        agent: the copy; None where it cannot be asked.
        silence: why not, in words.
        context: that of the last trial; None in the other modes.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        contexts = [entry.context for entry in study.trials if entry.context]
        self.context = contexts[-1] if contexts else None
        self.agent: Any = None
        self.silence = ""
        try:
            self.agent = self._copy()
        except ArgumentError as error:  # something was not measured that it has to know
            self.silence = str(error)

    def _copy(self) -> Any:
        study = self._study
        study._caught_up()
        agent = study._suggester.informed(self.context)
        if agent is study._suggester._agent:  # it holds a thread, or another library's things
            self.silence = f"{study.about.agent} cannot be asked: what it knows lies in another library, or a thread."
        elif not agent.history:
            self.silence = "Nothing is known yet."
        else:
            return agent
        return None

    def rewards(self, actions: Sequence[Action]) -> Band | None:
        """The rewards that it expects; None if the agent has no such model, or none of these actions."""
        return expected_rewards(self._study._units, self.agent, actions)

    def next(self) -> Action | None:
        """Its next suggestion; None where that depends on a context, or it has learned nothing yet."""
        if self.agent is None or self._study.about.mode == "contextual":
            return None
        last = deepcopy(self.agent.history[-1].observation)
        return self._study._units.require_valid(deepcopy(self.agent).act(last))

    def best(self, band: Band) -> int:
        """The place of the best mean."""
        return int(np.argmin(band.mean) if self._study.about.direction == "minimize" else np.argmax(band.mean))
