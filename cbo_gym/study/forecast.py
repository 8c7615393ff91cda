"""Forecasts of the outcome of a trial: intervals of every modelled variable, and whether constraints will hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from cbo_gym.study.units import Units
from cbo_gym.task import Action

# Number of posterior draws of outcomes, from which quantiles are computed, and of expected values.
DRAWS = 2000
EXPECTATION_DRAWS = 1000
# Levels of the quantiles that are the ends of a 95 % interval.
LEVELS = (0.025, 0.975)
# Largest number of played actions with which a suggestion is compared; the best of them may become the recommendation.
MAX_RIVALS = 16
# Largest number of variables whose intervals are in the reason for a suggestion.
MAX_IN_WORDS = 4


class Forecast(NamedTuple):
    """What the agent's model forecasts for one new trial, its noise included.

    Attributes:
        intervals: variable that is not set -> the ends of its 95 % interval, in the study's units.
        probabilities: constraint -> probability that the outcome of the trial meets it.
    """

    intervals: Mapping[str, tuple[float, float]]
    probabilities: Mapping[str, float]

    @property
    def in_words(self) -> str:
        """The forecast as a part of a sentence; empty without one."""
        # The product of an earlier trial is known, so its interval has no width.
        shown = [f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in self.intervals.items() if low < high]
        if len(shown) > MAX_IN_WORDS:
            shown[MAX_IN_WORDS - 1 :] = [f"{len(shown) - MAX_IN_WORDS + 1} more variables in what-if"]
        intervals = f"; 95 % of outcomes: {', '.join(shown)}" if shown else ""
        return intervals + "".join(f"; {name} with {percent(share)}" for name, share in self.probabilities.items())


NO_FORECAST = Forecast({}, {})


def percent(probability: float) -> str:
    """Return a probability in words: ``93 %``, ``<1 %`` or ``>99 %``."""
    if 0.0 < probability < 1.0 and not 0.01 <= probability <= 0.99:
        return "<1 %" if probability < 0.5 else ">99 %"
    return f"{100.0 * probability:.0f} %"


def forecast(units: Units, agent: Any, actions: Sequence[Action]) -> list[Forecast]:
    """Return forecasts of new trials; empty ones if the agent has no model that gives them."""
    return _from_draws(units, sample(agent, actions, DRAWS), actions)


def _from_draws(units: Units, draws: Mapping[str, np.ndarray] | None, actions: Sequence[Action]) -> list[Forecast]:
    """Return forecasts of actions from draws of each variable, shape ``(number of draws, number of actions)``."""
    if draws is None:
        return [NO_FORECAST] * len(actions)
    forecasts = []
    for column, action in enumerate(actions):
        forecasts.append(_summarize_draws(units, {name: values[:, column] for name, values in draws.items()}, action))
    return forecasts


def forecasts_in_words(units: Units, agent: Any, actions: Sequence[Action]) -> list[str]:
    """Return in words the forecast of each suggestion, and its probability of becoming the recommendation."""
    outcomes = sample(agent, actions, DRAWS)
    chances = [
        "" if chance is None else f"; becomes the recommendation with {percent(chance)}"
        for chance in leading_chances(agent, actions, outcomes)
    ]
    predictions = _from_draws(units, outcomes, actions)
    return [prediction.in_words + chance for prediction, chance in zip(predictions, chances, strict=True)]


def sample(agent: Any, actions: Sequence[Action], count: int, *, noise: bool = True) -> Mapping[str, np.ndarray] | None:
    """Return :meth:`cbo_gym.agent.Agent.sample_outcomes`; None for an agent without it."""
    sample_outcomes = getattr(agent, "sample_outcomes", None)
    return None if sample_outcomes is None else sample_outcomes(list(actions), count, noise=noise)


def _summarize_draws(units: Units, draws: Mapping[str, np.ndarray], action: Action) -> Forecast:
    done = units.native_values(action) if units.interface.sets_variables else {}
    # Values that the model does not predict are NaN.
    predicted = {name: values for name, values in draws.items() if not np.isnan(values).any()}
    # Objectives first, then the constrained variables.
    constraints = units.interface.problem.outcomes.constraints
    order = dict.fromkeys([*units.objectives, *(limit.node for limit in constraints), *predicted])
    intervals = {}
    for name in order:
        if name in predicted and name not in done and name not in units.categories:
            ends = np.quantile(predicted[name], LEVELS)
            if units.objectives == (name,):
                ends = np.concatenate(units.to_ends(ends[:1], ends[1:]))
            intervals[name] = (float(ends[0]), float(ends[1]))
    probabilities = {}
    for limit in constraints:
        values = done.get(limit.node, predicted.get(limit.node))
        if values is not None:
            probabilities[str(limit)] = float(np.mean(limit.excess(values) <= 0.0))
    return Forecast(intervals, probabilities)


def leading_chances(
    agent: Any, actions: Sequence[Action], outcomes: Mapping[str, np.ndarray] | None
) -> list[float | None]:
    """Return for each action the probability that its outcome makes it the recommendation.

    The action then has a higher expected reward than its rivals: the present recommendation and the best played
    actions. Constraints are ignored. An outcome y, standardised to z, moves the difference of the expected rewards of
    two actions by ``z Cov(difference, y) / std(y)`` (Frazier, Powell & Dayanik 2009, The knowledge-gradient policy for
    correlated normal predictions).

    Args:
        agent: the agent.
        actions: the actions.
        outcomes: variable -> draws of its outcome, shape ``(number of draws, number of actions)``; None for an agent
            without a joint posterior.

    Returns:
        The probabilities; None for the present recommendation, with several objectives, and for agents without a joint
        posterior.
    """
    if outcomes is None or agent.task.objectives or np.isnan(outcomes[agent.task.reward]).any():
        return [None] * len(actions)
    codec, best_played = agent.task.codec, np.argsort(-agent.estimated_rewards())[:MAX_RIVALS]
    rivals = [agent.recommend(), *(agent.history[index].action for index in best_played)]
    expected = sample(agent, [*rivals, *actions], EXPECTATION_DRAWS, noise=False)
    if expected is None:
        return [None] * len(actions)
    rivals_expected, actions_expected = np.split(expected[agent.task.reward], [len(rivals)], axis=1)
    points = [codec.to_point(rival) for rival in rivals]
    is_known = ~np.isnan(rivals_expected).any(axis=0)
    chances: list[float | None] = []
    for column, action in enumerate(actions):
        draws, point = actions_expected[:, column], codec.to_point(action)
        is_other = is_known & [not np.allclose(rival, point, atol=1e-6) for rival in points]
        leads = draws[:, None] - rivals_expected[:, is_other]
        # Draws of expectations may scatter more than those of outcomes.
        spread = max(float(outcomes[agent.task.reward][:, column].std()), float(draws.std()), 1e-300)
        slopes = (draws - draws.mean()) @ leads / (len(draws) - 1) / spread
        if not is_other[0] or not slopes.any():
            chances.append(None)
            continue
        # The lead over a rival, mean + slope z, is positive on one side of its root; z must be on this side for each.
        with np.errstate(divide="ignore", invalid="ignore"):
            roots = -leads.mean(axis=0) / slopes
        low, high = roots[slopes > 0.0].max(initial=-np.inf), roots[slopes < 0.0].min(initial=np.inf)
        always_leads = (leads.mean(axis=0)[slopes == 0.0] > 0.0).all()
        chances.append(max(0.0, float(ndtr(high) - ndtr(low))) if always_leads else 0.0)
    return chances
