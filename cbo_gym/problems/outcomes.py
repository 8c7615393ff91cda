"""Outcomes: what counts of a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcomes:
    """What a problem asks of the rounds that are played.

    Args:
        objective: the node whose expected value is maximised.
    """

    objective: str

    def reward(self, values: Mapping[str, Any]) -> Any:
        """The reward of rounds with these values, by variable, of the rounds' shape."""
        return values[self.objective]
