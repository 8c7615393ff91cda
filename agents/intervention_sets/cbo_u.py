"""CBO-U: causal Bayesian optimisation with an unknown graph (Durand, Annadani, Bauer & Parbhoo 2025).

In hard mode nothing is better than to set the right ones of the reward's parents, so they are all of the graph that is
learned: a posterior over sets of parents, by Bayesian linear regression in closed form or by Gaussian processes. The
causal prior of CBO (Aglietti et al. 2020) is then the mixture of what these sets say of E[Y | do(x)], and CBO plays the
targets whose variables are all parents in a set that is not negligible.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from cbo_gym.agents.intervention_sets.cbo import CBO, GivenCosts
from cbo_gym.agents.intervention_sets.parent_posterior import ParentPosterior
from cbo_gym.arguments import require_truth_value, whole_number
from cbo_gym.task import Action, Observation


class CBOU(CBO):
    """CBO on the reward's parents as they are learned. Plays hard tasks, whatever is told of their graph.

    Args:
        nonlinear: Gaussian processes in place of linear functions of the parents.
        most_parents: sets of parents are no larger, 1 to 100.
        costs: as for CBO.
        device: torch device.

    Attributes:
        posterior: the posterior over sets of parents.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    posterior: ParentPosterior

    learns_from_interventions = True

    def __init__(
        self,
        nonlinear: bool = False,
        most_parents: int = 8,
        costs: GivenCosts | None = None,
        device: str = "cpu",
    ) -> None:
        # a prior of linear functions may be wrong anywhere, and would then mislead about every set
        super().__init__(costs=costs, in_common=False, device=device)
        self.nonlinear = require_truth_value("nonlinear", nonlinear)
        self.most_parents = whole_number("most_parents", most_parents, at_least=1, at_most=100)

    def make_model(self) -> ParentPosterior:
        self.posterior = ParentPosterior(self.task, self.nonlinear, self.most_parents, self.device)
        return self.posterior

    def choose_targets(self) -> Collection[frozenset[str]]:
        parents = self.posterior.parents()
        return [target for target in self.task.targets if target <= parents]

    @property
    def epsilon(self) -> float:
        return 0.0

    def estimated_rewards(self) -> np.ndarray:
        """Posterior means of E[Y | action]; what sets none of the likely parents earns what nothing set earns."""
        parents = self.posterior.parents()
        idle = np.array([not self.task.targets[int(past.action["target"])] & parents for past in self.history])
        estimates = super().estimated_rewards()
        if idle.any():
            estimates[idle] = np.mean([past.reward for past, one in zip(self.history, idle, strict=True) if one])
        return estimates

    def act(self, observation: Observation) -> Action:
        self.explore(self.choose_targets())
        return super().act(observation)
