"""CBO as it is played in one time slice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cbo_gym.agents.intervention_sets.cbo import CBO
from cbo_gym.agents.surrogates.causal.causal_prior import EffectModel, ObservationalModel
from cbo_gym.task import Action, Observation


class SliceCBO(CBO):
    """CBO that intervenes in every round, on every set that the task offers but the empty one. Plays hard tasks.

    It was given its observations beforehand. Before the first trial it improves on the best prior mean, later on the
    best posterior mean of the trials: observational rewards are of a past in which nothing was set.

    Args:
        model: what tells about the effects of interventions; None for what the observations of the slice tell.
        device: torch device.
    """

    def __init__(self, model: EffectModel | None = None, device: str = "cpu") -> None:
        # with so few trials a slice what is learned of one set would mislead about others
        super().__init__(in_common=False, device=device)
        self._given = model

    def make_model(self) -> EffectModel:
        # the observations are noisy, whatever the trials are
        return self._given or ObservationalModel(replace(self.task, noise=None), self.device)

    def choose_targets(self) -> list[frozenset[str]]:
        return [target for target in self.task.targets if target]

    def act(self, observation: Observation) -> Action:
        if not self.history:
            return self._anything()
        best = self._best()
        found = [arm.maximise(best, self.rng) for arm in self._explored]
        return max(found, key=lambda pair: pair[1])[0]

    def _anything(self) -> Action:
        arm = self._explored[int(self.rng.integers(len(self._explored)))]
        return arm.action(self.rng.random(len(self.task.targets[arm.index])))

    def _best(self) -> float:
        estimates = self.estimated_rewards()
        trials = estimates[self._initial :]
        return float(trials.max()) if len(trials) else max(float(arm.beliefs()[1].max()) for arm in self._explored)

    def trial_estimates(self, count: int) -> np.ndarray:
        """Posterior means of the last ``count`` rounds."""
        return self.estimated_rewards()[-count:]
