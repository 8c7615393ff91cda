"""METS, mixed-effect Thompson sampling (Aouali, Kveton & Katariya 2023), on a separable system.

The set-up is that of Bauschmann & Maghsudi (2026, sec. V): the method knows the family of the signals' distributions
with the ranges of its parameters, and the effects of the base arms on the reward follow structural equations. A round
draws the parameters of every signal and the coefficients of the equations from their posteriors, and plays the super
arm with the highest expected payoff under the draw.
"""

from __future__ import annotations

import numpy as np

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.agents.super_arms.base import SuperArmAgent, payoff_of, require_separable
from cbo_gym.agents.super_arms.separable_fit import SeparableModel, coefficient_posterior, fit_jointly
from cbo_gym.agents.super_arms.separable_system import SeparableSystem
from cbo_gym.scm.noise import DistributionFamily
from cbo_gym.task import Action, Info, Observation

# Number of distributions in the prior of a signal.
PARTICLES = 500
# Likelihood of a distribution: number of bins of the signals' range, and of quantiles that represent the distribution.
BINS, QUANTILES = 60, 400
# Number of samples of the signals for expected payoffs.
DRAWS = 32
# Largest number of super arms that are compared in a round.
MAX_COMPARED = 1000


class METS(SuperArmAgent):
    """Thompson sampling of signals and equations. Plays masked separable tasks with a known family of the signals.

    Raises:
        ArgumentError: from ``reset``, if there are too many super arms.
        UnsupportedModeError: from ``reset``, if the task is not a separable system, or the family is not known.
    """

    def setup(self, seed: int) -> None:
        super().setup(seed)
        require_separable(self.task, "METS")
        if self.task.signal_family is None:
            raise UnsupportedModeError(
                f"METS needs the family of the signals' distributions; {self.task.env_id} has none"
            )
        count = self.super_arms.shape[1]
        self._prior = SignalPrior(self.task.signal_family, self.task.signal_range, self.rng)
        self._likelihoods = np.zeros((count, PARTICLES))
        self._counts = np.zeros(count)
        self._payoff = payoff_of(self.task)
        self.model = SeparableModel(self._fit)

    def _fit(self, _: object, exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
        """Return the system that explains all rounds best; the search starts from the last fit."""
        return fit_jointly(exogenous, nodes, self.task.components, self.task.graph.is_acyclic, self.model.system)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        selected, exogenous = np.flatnonzero(action), observation["exogenous"]
        self._counts[selected] += 1
        self._likelihoods[selected] += self._prior.log_likelihoods(exogenous[selected])
        self.model.add(np.asarray(action, dtype=float), exogenous, observation["nodes"][:-1])

    def act(self, observation: Observation) -> Action:
        if self._counts.min() < 1:
            return self.rarest_super_arm(self._counts)
        if self.model.refit_if_needed():
            _, exogenous, nodes = self.model.rounds()
            assert self.model.system is not None
            self._draw_coefficients = coefficient_posterior(self.model.system, exogenous, nodes)
        rows = self.candidates()
        scores = self._expected_payoffs(self.super_arms[rows], self._draw_signals())
        return self.super_arms[rows[int(scores.argmax())]].copy()

    def candidates(self) -> np.ndarray:
        """Return rows of the super arms to compare: all, or if there are many, those near the last and random ones."""
        count = len(self.super_arms)
        if count <= MAX_COMPARED:
            return np.arange(count)
        similar = (self.super_arms != self.super_arms[self.played[-1]]).sum(axis=1) <= 2
        return np.union1d(np.flatnonzero(similar), self.rng.choice(count, MAX_COMPARED // 2, replace=False))

    def _draw_signals(self) -> np.ndarray:
        """Return stratified samples of the signals under one draw of their parameters, shape ``(DRAWS, N)``."""
        # With Gumbel noise, the largest log likelihood is a draw from the posterior.
        particles = (self._likelihoods + self.rng.gumbel(size=self._likelihoods.shape)).argmax(axis=1)
        strata = self.rng.permuted(np.tile(np.arange(DRAWS)[:, None], len(particles)), axis=0)
        uniforms = (strata + self.rng.random(strata.shape)) / DRAWS
        return self._prior.signals(particles, uniforms)

    def _expected_payoffs(self, super_arms: np.ndarray, signals: np.ndarray) -> np.ndarray:
        # The equations are solved fastest in the memory layout (node, super arm, draw).
        exogenous = np.moveaxis(super_arms.T[:, :, None] * signals.T[:, None, :], 0, -1)
        assert self.model.system is not None
        for coefficients in (self._draw_coefficients(self.rng), self.model.system.coefficients):
            try:
                nodes = SeparableSystem(self.task.components, coefficients).solve(exogenous)
                return self._payoff(nodes).mean(axis=1)
            except ArithmeticError:
                # The fixed-point sweeps do not converge with these coefficients.
                continue
        return self.rng.random(len(super_arms))

    def estimated_rewards(self) -> np.ndarray:
        """Return expected payoffs of the super arms played, under the likeliest parameters and the fitted equations."""
        if self.model.system is None:
            return super().estimated_rewards()
        rows, inverse = np.unique(self.played, return_inverse=True)
        levels = (np.arange(DRAWS)[:, None] + 0.5) / DRAWS * np.ones(len(self._counts))
        uniforms = np.random.default_rng(0).permuted(levels, axis=0)
        signals = self._prior.signals(self._likelihoods.argmax(axis=1), uniforms)
        nodes = self.model.system.solve(self.super_arms[rows][:, None, :] * signals)
        return self._payoff(nodes).mean(axis=1)[inverse]


class SignalPrior:
    """Discrete prior of a signal's distribution: draws from a family. All signals lie in ``signal_range``."""

    def __init__(self, family: DistributionFamily, signal_range: tuple[float, float], rng: np.random.Generator) -> None:
        self._distributions = [family.draw(rng) for _ in range(PARTICLES)]
        low, high = signal_range
        width = (high - low) / BINS
        self._edges = np.linspace(low - 3 * width, high + 3 * width, BINS + 7)[1:-1]
        levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
        quantiles = np.stack([distribution.from_uniform(levels) for distribution in self._distributions])
        bins = np.searchsorted(self._edges, quantiles)
        shares = np.stack([np.bincount(row, minlength=BINS + 6) for row in bins]) / QUANTILES
        padded = np.pad(shares, ((0, 0), (1, 1)))
        blurred = 0.25 * padded[:, :-2] + 0.5 * padded[:, 1:-1] + 0.25 * padded[:, 2:]
        self._log_shares = np.log(blurred + 1e-3 / BINS)

    def log_likelihoods(self, signals: np.ndarray) -> np.ndarray:
        """Return the log likelihood of each signal, ``(n,)``, under every distribution, shape ``(n, PARTICLES)``."""
        return self._log_shares[:, np.searchsorted(self._edges, signals)].T

    def signals(self, particles: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Return the quantiles of distribution ``particles[i]`` at column i of ``uniforms``, ``(n, N)``."""
        distributions = [self._distributions[particle] for particle in particles]
        columns = zip(distributions, uniforms.T, strict=True)
        return np.stack([distribution.from_uniform(column) for distribution, column in columns], axis=1)
