"""CBO-U: causal Bayesian optimisation with an unknown graph (Durand, Annadani, Bauer & Parbhoo 2025).

In hard mode an optimal action sets parents of the reward, so the method learns only the reward's parents: a posterior
over sets of parents, by Bayesian linear regression in closed form or by Gaussian processes. The causal prior of CBO
(Aglietti et al. 2020) is then the mixture of the estimates of E[Y | do(x)] given each set of parents. CBO plays target
sets whose variables are all likely parents.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from cbo_gym._util.arguments import require_truth_value, whole_number
from cbo_gym.agents.intervention_sets.cbo import CBO, GivenCosts
from cbo_gym.agents.intervention_sets.parent_posterior import ParentPosterior
from cbo_gym.task import Action, Observation


class CBOU(CBO):
    """CBO on the reward's parents, which it learns. Plays hard tasks, with a known or a hidden graph.

    Args:
        nonlinear: whether rewards are modelled by Gaussian processes instead of linear functions of the parents.
        most_parents: largest number of parents considered, 1 to 100.
        costs: costs of the target sets, as for CBO.
        device: torch device.

    Attributes:
        posterior: the posterior over sets of parents.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    posterior: ParentPosterior

    takes_mixed_domains = False
    learns_from_interventions = True

    def __init__(
        self,
        nonlinear: bool = False,
        most_parents: int = 8,
        costs: GivenCosts | None = None,
        device: str = "cpu",
    ) -> None:
        # A prior of linear functions may be wrong anywhere, and in a shared GP its errors would affect every set.
        super().__init__(costs=costs, in_common=False, device=device)
        self.nonlinear = require_truth_value("nonlinear", nonlinear)
        self.most_parents = whole_number("most_parents", most_parents, at_least=1, at_most=100)

    def make_effects(self) -> ParentPosterior:
        self.posterior = ParentPosterior(self.task, self.nonlinear, self.most_parents, self.device)
        return self.posterior

    def choose_targets(self) -> Collection[frozenset[str]]:
        parents = self.posterior.parents()
        return [target for target in self.task.targets if target <= parents]

    @property
    def epsilon(self) -> float:
        return 0.0

    def estimated_rewards(self) -> np.ndarray:
        """Return posterior means of E[Y | action]; actions that set no likely parent share their mean reward."""
        parents = self.posterior.parents()
        targets = [self.task.targets[int(past.action["target"])] for past in self.history]
        without_parents = np.array([not target & parents for target in targets])
        estimates = super().estimated_rewards()
        if without_parents.any():
            rewards = np.array([past.reward for past in self.history])
            estimates[without_parents] = rewards[without_parents].mean()
        return estimates

    def act(self, observation: Observation) -> Action:
        self.explore(self.choose_targets())
        return super().act(observation)
