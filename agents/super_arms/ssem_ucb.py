"""SSEM-UCB, SSEM-UCB-JO and SSEM-UCB-Norm (Bauschmann & Maghsudi 2026, Alg. 1 to 4).

A separable system of structural equations is fitted to all rounds. The payoff of a super arm under the system is
expanded in the deviations of the signals from their means. Its expectation under the empirical moments, plus standard
errors, is the *internal* upper confidence bound. The *external* bound favours base arms with few observations. The
three variants differ in the fit of the system, the growth of the external bound and the moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from cbo_gym._util.arguments import (
    is_whole_number,
    require_not_negative,
    require_positive,
    require_truth_value,
    require_word,
)
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.agents.super_arms.base import SuperArmAgent, payoff_of, require_separable
from cbo_gym.agents.super_arms.payoff_polynomials import (
    CHUNK,
    MAX_DEGREE,
    Expansion,
    Payoff,
    PayoffPolynomials,
    PolynomialsAboutZero,
)
from cbo_gym.agents.super_arms.separable_fit import SeparableModel, fit_by_base_arm, fit_jointly
from cbo_gym.agents.super_arms.separable_system import EdgeFunction, SeparableSystem
from cbo_gym.agents.super_arms.signal_moments import SignalMoments
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.task import Action, Info, Observation

# Defaults of the arguments internal_scale and external_scale.
INTERNAL_SCALE, EXTERNAL_SCALE = 0.3, 0.0
# Weight of (ln t / m)^2, relative to ln t / m, in the internal bound of a base arm with m observations in t rounds.
RARITY_WEIGHT = 4.0
# Weight of the uncertainty about the edges out of a base arm, in mean square errors of the nodes.
EDGE_WEIGHT = 12.0
# Degrees among which "search" chooses.
SEARCHED_DEGREES = (1, 2, 3, 4)
# Largest number of points at which the equations are solved after a fit.
MAX_POINTS = 2_000_000
# Number of points for the remainders of the polynomials, shared by the super arms.
REMAINDER_POINTS = 200_000
# Limits of the number of samples for a super arm's remainder; with fewer there is no correction.
MIN_SAMPLES, MAX_SAMPLES = 16, 512

# Values of the argument ``centre``.
CENTRES: dict[str, type[PayoffPolynomials]] = {"means": PayoffPolynomials, "zero": PolynomialsAboutZero}

# Values of the argument ``external`` -> function of C of the selected base arms, (A, N), and s to the bound, (A,).
EXTERNAL: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "max": lambda confidence, limit: confidence.max(axis=1),
    "sum": lambda confidence, limit: confidence.sum(axis=1) / limit,
}


class SSEMUCB(SuperArmAgent):
    """SSEM-UCB (Algorithm 1): one fit for each base arm, assembled to an acyclic system. Plays masked separable tasks.

    Args:
        degree: degree q of the Taylor polynomials, 1 to 4; ``"search"`` to choose it at every fit (Alg. 4).
        internal_scale: factor of the standard errors in the internal bound, at least 0.
        external_scale: factor of the external bound, at least 0; the theory has 1.
        external: ``"max"``, the bound of the least observed base arm, or ``"sum"``, the mean over s (sec. III-C).
        centre: ``"means"`` of the signals or ``"zero"``, the centre of the Taylor polynomials; None for the means if
            they are affordable: on acyclic systems with up to 2 million points to solve.
        reach: factor of the width of the numerical derivatives, above 0; towards 0 they are exact at the means.
        corrected: whether to add the mean remainder of the polynomials, if there are at most 12,500 super arms; False
            for the paper's polynomials.

    Attributes:
        model: the fitted structural equations.
        moments: empirical moments of the signals.
        expansion: the payoffs' polynomials at the present fit; None before the first.

    Raises:
        ArgumentError: if an argument is out of range; from ``reset``, if there are too many super arms.
        UnsupportedModeError: from ``reset``, if the task is not a separable system.
    """

    # Number of plays of each base arm before the first fit.
    initial_plays = 3

    def __init__(
        self,
        degree: int | Literal["search"] = 4,
        internal_scale: float = INTERNAL_SCALE,
        external_scale: float = EXTERNAL_SCALE,
        external: str = "max",
        centre: str | None = None,
        reach: float = 1.0,
        corrected: bool = True,
    ) -> None:
        is_degree = is_whole_number(degree) and 1 <= int(degree) <= MAX_DEGREE
        if not is_degree and not (isinstance(degree, str) and degree == "search"):
            raise ArgumentError(
                f"degree must be a whole number from 1 to {MAX_DEGREE}, or 'search'; "
                f"given {short_repr(degree)}{did_you_mean(degree, ['search'])}"
            )
        require_word("external", external, sorted(EXTERNAL))
        if centre is not None:
            require_word("centre, unless it is None,", centre, sorted(CENTRES))
        require_not_negative("internal_scale", internal_scale)
        require_not_negative("external_scale", external_scale)
        require_positive("reach", reach)
        require_truth_value("corrected", corrected)
        self.degree, self.centre, self.reach, self.corrected = degree, centre, reach, corrected
        self.internal_scale, self.external_scale, self.external = internal_scale, external_scale, external

    def setup(self, seed: int) -> None:
        super().setup(seed)
        require_separable(self.task, name_of(self))
        low, high = self.task.signal_range
        degrees = SEARCHED_DEGREES if self.degree == "search" else (self.degree,)
        centre = self.centre or self._affordable_centre(int(degrees[-1]))
        self._polynomials = [CENTRES[centre](self.super_arms, int(q), self.reach) for q in degrees]
        self.moments = SignalMoments(self.super_arms.shape[1], 2 * max(map(int, degrees)), high - low)
        self.model = SeparableModel(self.fit)
        self._payoff = payoff_of(self.task)
        self.expansion: Expansion | None = None
        self._variances: tuple[Expansion, np.ndarray] | None = None

    def _affordable_centre(self, degree: int) -> str:
        sizes = self.super_arms.sum(axis=1)
        points = sum(count * math.comb(size + degree, degree) for size, count in enumerate(np.bincount(sizes).tolist()))
        return "means" if self.task.graph.is_acyclic and points <= MAX_POINTS else "zero"

    def components(self) -> tuple[EdgeFunction, ...]:
        """Return candidate functions of the edges."""
        return tuple(self.task.components)

    def fit(self, super_arms: np.ndarray, exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
        """Return the structural equations fitted to all rounds, arrays of shape ``(rounds, N)``."""
        return fit_by_base_arm(super_arms, exogenous, nodes, self.components())

    def growth(self, rounds: int) -> float:
        """Return the factor of the external bound after ``rounds`` rounds."""
        return 1.0

    def signal_moments(self) -> np.ndarray:
        """Return moments of the signals by order, shape ``(2 q + 1, N)``."""
        return self.moments.moments()

    def internal(self, expansion: Expansion) -> np.ndarray:
        """Return the internal upper confidence bound of every super arm, shape ``(A,)``."""
        moments = self.signal_moments()
        # The variances change little between two fits, so they are computed once for each expansion.
        if self._variances is None or self._variances[0] is not expansion:
            by_signals = expansion.variances(moments, self.moments.covariances(moments))
            by_edges = EDGE_WEIGHT * self.super_arms.shape[1] * self.model.error * self.super_arms
            self._variances = expansion, by_signals + by_edges
        ratios = math.log(len(self.history)) / self.moments.counts
        variance = self._variances[1] @ (ratios + RARITY_WEIGHT * ratios**2)
        return expansion.expected_payoffs(moments) + self.internal_scale * np.sqrt(variance)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        super_arm, exogenous = np.asarray(action, dtype=float), observation["exogenous"]
        self.moments.add(super_arm, exogenous)
        self.model.add(super_arm, exogenous, observation["nodes"][:-1])

    def act(self, observation: Observation) -> Action:
        if self.moments.counts.min() < self.initial_plays:
            return self.rarest_super_arm(self.moments.counts)
        if self.model.refit_if_needed():
            if self._polynomials[0].about_means:
                self.moments.recentre(*self.model.rounds()[:2])
            self.expansion = self.expand()
        assert self.expansion is not None
        return self.best(self.scores(self.expansion))

    def scores(self, expansion: Expansion) -> np.ndarray:
        """Return the internal plus external upper confidence bound of every super arm (Eq. 9), shape ``(A,)``."""
        rounds = len(self.history)
        confidence = self.moments.confidence(rounds, self.limit)
        internal = self.internal(expansion)
        external = EXTERNAL[self.external](self.super_arms * confidence, self.limit)
        weight = self.external_scale * np.ptp(internal) * self.growth(rounds)
        return internal + weight * 4.0 * math.sqrt(math.log(rounds)) * external

    def estimated_rewards(self) -> np.ndarray:
        """Return payoffs of the super arms played under the fitted equations and the empirical moments."""
        if self.expansion is None:
            return super().estimated_rewards()
        return self.expansion.expected_payoffs(self.signal_moments())[self.played]

    def expand(self) -> Expansion:
        """Return the payoffs' polynomials at the present fit, of the degree asked for."""
        samples = min(REMAINDER_POINTS // len(self.super_arms), MAX_SAMPLES)
        is_corrected = self.corrected and samples >= MIN_SAMPLES
        if self.degree == "search":
            expansion, remainder = self._search(max(samples, MIN_SAMPLES))
            return replace(expansion, remainder=remainder) if is_corrected else expansion
        expansion, payoff = self._expand_to(self._polynomials[0])
        return replace(expansion, remainder=self.remainder(expansion, payoff, samples)) if is_corrected else expansion

    def _search(self, samples: int) -> tuple[Expansion, np.ndarray]:
        """Return the polynomials of the first degree that suffices (Alg. 4), or of the best, and their remainder."""
        tried = []
        for polynomials in self._polynomials:
            expansion, payoff = self._expand_to(polynomials)
            tried.append((expansion, self.remainder(expansion, payoff, samples)))
            scores = self.scores(expansion)
            gaps = scores.max() - scores
            if np.abs(tried[-1][1]).max() < gaps[gaps > 0.0].min(initial=np.inf) / 4.0:
                return tried[-1]
        return min(tried, key=lambda result: float(np.abs(result[1]).max()))

    def _expand_to(self, polynomials: PayoffPolynomials) -> tuple[Expansion, Payoff]:
        """Return the polynomials, and the payoff function that they approximate."""
        system = self.model.system
        assert system is not None
        while True:
            payoff = self._payoff_under(system)
            try:
                return polynomials.fit(payoff, self.moments.centre, self.moments.spread()), payoff
            except ArithmeticError:
                # The sweeps diverge for some signals. An acyclic system always has a solution.
                system = system.without_weakest_edge_on_a_cycle()

    def _payoff_under(self, system: SeparableSystem) -> Payoff:
        return lambda exogenous: self._payoff(system.solve(exogenous))

    def remainder(self, expansion: Expansion, payoff: Payoff, samples: int) -> np.ndarray:
        """Return the mean of payoff minus polynomial over samples of the observed signals, shape ``(A,)``.

        Both are evaluated at the same signals, so that only their difference is noisy.
        """
        super_arms, exogenous, _ = self.model.rounds()
        columns = zip(super_arms.T, exogenous.T, strict=True)
        signals = np.stack([self.rng.choice(z[x > 0], samples) for x, z in columns], axis=1)
        blocks = np.array_split(self.super_arms[:, None, :], 1 + len(self.super_arms) * samples // CHUNK)
        means = np.concatenate([payoff(block * signals).mean(axis=1) for block in blocks])
        return means - expansion.mean_over(signals - self.moments.centre)


class SSEMUCBJO(SSEMUCB):
    """SSEM-UCB-JO (Algorithm 2): SSEM-UCB with one fit to all rounds, of a system with or without cycles."""

    def fit(self, super_arms: np.ndarray, exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
        return fit_jointly(exogenous, nodes, self.components(), self.task.graph.is_acyclic, self.model.system)

    def growth(self, rounds: int) -> float:
        return math.sqrt(math.sqrt(rounds) / math.log(rounds)) if rounds > 1 else 1.0


class SSEMUCBNorm(SSEMUCB):
    """SSEM-UCB-Norm (Algorithm 3): SSEM-UCB with normal signals, whose means and variances give all moments."""

    def signal_moments(self) -> np.ndarray:
        return self.moments.normal_moments()
