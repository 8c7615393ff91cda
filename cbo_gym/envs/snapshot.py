"""Snapshot: the state of an experiment that a picture shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.scm import Intervention

MISSING = "-"


@dataclass(frozen=True)
class Snapshot:
    """An experiment after a round.

    Args:
        dynamics: dynamics of the environment.
        env_id: id of the environment; None for an unregistered one.
        round: number of rounds played.
        total_reward: sum of their rewards; an array with several objectives.
        values: values of all variables in the last round; empty before the first.
        intervention: intervention of the last action; None before the first.
    """

    dynamics: Dynamics
    env_id: str | None
    round: int
    total_reward: Any
    values: Mapping[str, float]
    intervention: Intervention | None

    @property
    def intervened(self) -> frozenset[str]:
        """The variables that the last action set."""
        return frozenset() if self.intervention is None else frozenset(self.intervention.hard)

    @property
    def title(self) -> str:
        return self.env_id or f"{self.dynamics.problem.name} ({self.dynamics.mode} mode)"

    @property
    def score(self) -> str:
        """Rewards of the last round and so far, in a line."""
        if self.round == 0:
            return "round 0   no reward yet"
        if self.dynamics.problem.outcomes.objectives and self.intervention is not None:
            objectives = self.dynamics.objectives(dict(self.values), self.intervention)
            return "   ".join(
                [f"round {self.round}", *(f"{name} {float(value):.4g}" for name, value in objectives.items())]
            )
        reward, total = float(self.dynamics.problem.outcomes.reward(self.values)), self.total_reward
        return f"round {self.round}   reward {reward:.4g}   total {total:.4g}   mean {total / self.round:.4g}"

    def value(self, name: str) -> str:
        """Return a node's value with four digits."""
        return f"{float(self.values[name]):.4g}" if name in self.values else MISSING
