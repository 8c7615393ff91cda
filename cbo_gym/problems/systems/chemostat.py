"""Chemostat: algae and rotifers in a chemostat, one day ahead, fitted to measurements (Ren et al. 2024, sec. 11.6).

The graph is the paper's Eq. 9 to 14. The mechanisms come from the differential equations of Blasius et al. (2020),
Long-term cyclic persistence in an experimental predator-prey system, Nature 577: ``dx/dt = gain - loss x``, solved over
a day with the parents held constant. ``examples/fit_chemostat.py`` fits a factor on each gain and each loss, and the
noise, to experiment C1; its result is ``chemostat.yaml`` in this folder.

Noise is added to the square root of every forecast, because counts scatter evenly on that scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cbo_gym._util.arguments import whole_number
from cbo_gym._util.summation import add_up
from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.errors import ArgumentError, shorten
from cbo_gym.problems.base import Problem
from cbo_gym.problems.systems import compositions
from cbo_gym.problems.systems.exogenous import PAPER
from cbo_gym.scm import Floats, GaussianMixture, StructuralCausalModel, Variable
from cbo_gym.scm.formula import non_negative

FILE_NAME = "chemostat.yaml"

# Dilution rate delta and mortality m, per day.
DILUTION, MORTALITY = 0.55, 0.15
# Duration theta of the egg stage.
EGG_DAYS = 1.0
# Ratio beta of the mass of an adult to that of a juvenile.
MASS_RATIO = 5.0
# Uptake by algae, F_P(N) = r_P N / (K_P + N): r_P per day, K_P in umol N/l.
ALGAE_UPTAKE, ALGAE_HALF = 3.3, 4.3
# Uptake by rotifers, F_B(P) = r_B P^kappa / (K_B^kappa + P^kappa): r_B per day, K_B in umol N/l, and kappa.
ROTIFER_UPTAKE, ROTIFER_HALF, ROTIFER_POWER = 2.25, 15.0, 1.25
HALF_FOOD = ROTIFER_HALF**ROTIFER_POWER
DOMAINS = {"N_in": (60.0, 100.0), "J": (0.0, 36.0), "A": (0.0, 180.0)}
MAX_DAYS = 100

# Powers of e rather than np.exp: on single floats NumPy functions cost many times the arithmetic.
E = math.e
# Share of the eggs that are not washed out before they hatch.
HATCHED = E ** (-DILUTION * EGG_DAYS)

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Rates(StrictModel):
    """Factors on the gain and the loss of a node's equation; both would be 1 if the equation were complete."""

    gain: Positive
    loss: Positive


class Scales(StrictModel):
    """The free factors of the daily map.

    ``N`` multiplies the uptake of nitrogen. All others are dimensionless except the gain of P, which stands for the
    stock that grows, in umol N/l.
    """

    N: Positive
    P: Rates
    J: Rates
    A: Rates
    E: Rates
    D: Rates


class Mixture(StrictModel):
    """Gaussian mixture of a forecast error: the square root of the node minus the square root of its forecast."""

    weights: list[float]
    means: list[float]
    stds: list[float]


class ForecastErrors(StrictModel):
    """Mixture of each node's forecast error."""

    N: Mixture
    P: Mixture
    J: Mixture
    A: Mixture
    E: Mixture
    D: Mixture

    def distributions(self) -> dict[str, GaussianMixture]:
        return {node: GaussianMixture(mixture.weights, mixture.means, mixture.stds) for node, mixture in self}


class Day(StrictModel):
    """N_in and the nodes on one day."""

    N_in: Positive
    N: Positive
    P: Positive
    J: Positive
    A: Positive
    E: Positive
    D: Positive


class Coefficients(StrictModel):
    """The result of the fit, as the file holds it.

    ``yesterday`` is the day before the round, the median training day: the nodes that no action sets (N, P, E, D), and
    the N_in, J and A that count as no intervention. ``errors`` has, for each node, the root mean squared errors of
    one-day-ahead forecasts on the days that were held out.
    """

    source: str
    fitted_with: str
    training_days: tuple[float, float]
    held_out_days: tuple[float, float]
    pairs: dict[Literal["training", "held_out"], int]
    yesterday: Day
    scales: Scales
    noise: ForecastErrors
    errors: dict[str, dict[str, float]]


def load_coefficients(path: str | Path | None = None) -> Coefficients:
    """Read fitted coefficients; None for the package's own.

    Raises:
        ArgumentError: if the file cannot be read, or a field is missing or invalid; the message names it.
    """
    source = Path(path) if path is not None else Path(__file__).with_name(FILE_NAME)
    try:
        return Coefficients.model_validate(read_yaml(source))
    except ArgumentError as error:
        raise ArgumentError(f"cannot read the coefficients {shorten(str(source))}: {error}") from error
    except ValidationError as error:
        raise ArgumentError(f"{source}: {field_errors(error, Coefficients)}") from error


def _algae_uptake(nitrogen: Floats) -> Floats:
    return ALGAE_UPTAKE * nitrogen / (ALGAE_HALF + nitrogen)


def _rotifer_uptake(algae: Floats) -> Floats:
    food = algae**ROTIFER_POWER
    return ROTIFER_UPTAKE * food / (HALF_FOOD + food)


def _after_a_day(start: Floats, loss: Floats, gain: Floats, u: Floats) -> Floats:
    """Return the solution after a day of dx/dt = gain - loss x, with noise added to its square root."""
    remaining = E ** (-loss)
    forecast = start * remaining + gain * (1.0 - remaining) / loss
    root = non_negative(forecast**0.5 + u)
    return root * root


def nitrogen(uptake: Floats, before: Floats, algae_before: Floats, external: Floats, u: Floats) -> Floats:
    """Return dissolved nitrogen, umol N/l: dN = delta (N_in - N) - F_P(N) P, with F_P(N) / N at yesterday's value."""
    loss = DILUTION + uptake * ALGAE_UPTAKE * algae_before / (ALGAE_HALF + before)
    return _after_a_day(before, loss, DILUTION * external, u)


def algae(gain: Floats, loss: Floats, before: Floats, nitrogen_now: Floats, u: Floats) -> Floats:
    """Return algae, umol N/l: dP = F_P(N) - delta P.

    Algae turn over in less than a day, so ``gain`` includes the typical stock that grows, not yesterday's. The grazers
    are not parents in the paper's Eq. 10; they are part of ``loss``.
    """
    return _after_a_day(before, loss * DILUTION, gain * _algae_uptake(nitrogen_now), u)


def juveniles(
    gain: Floats, loss: Floats, algae_now: Floats, before: Floats, adults_before: Floats, u: Floats
) -> Floats:
    """Return juveniles per ml: dJ = R_J - (m + delta) J with R_J = F_B(P) A exp(-delta theta)."""
    hatching = HATCHED * _rotifer_uptake(algae_now) * adults_before
    return _after_a_day(before, loss * (MORTALITY + DILUTION), gain * hatching, u)


def adults(gain: Floats, loss: Floats, algae_now: Floats, before: Floats, u: Floats) -> Floats:
    """Return adults per ml: dA = beta R_A - (m + delta) A, where maturing, R_A, is a share of the eggs F_B(P) A."""
    maturing = MASS_RATIO * _rotifer_uptake(algae_now) * before
    return _after_a_day(before, loss * (MORTALITY + DILUTION), gain * maturing, u)


def eggs(gain: Floats, loss: Floats, before: Floats, algae_now: Floats, adults_now: Floats, u: Floats) -> Floats:
    """Return eggs per ml: dE = F_B(P) A (1 - exp(-delta theta)) - delta E; ``loss`` includes hatching."""
    laid = (1.0 - HATCHED) * _rotifer_uptake(algae_now) * adults_now
    return _after_a_day(before, loss * DILUTION, gain * laid, u)


def dead(gain: Floats, loss: Floats, before: Floats, juveniles_now: Floats, adults_now: Floats, u: Floats) -> Floats:
    """Return dead animals per ml: dD = m (J + A) - delta D."""
    return _after_a_day(before, loss * DILUTION, gain * MORTALITY * (juveniles_now + adults_now), u)


def _negated_dead(*args: Floats) -> Floats:
    return -dead(*args)


def _population_variables(
    scales: Scales, noise: Mapping[str, GaussianMixture], before: Mapping[str, Floats | str], today: str, first: int
) -> list[Variable]:
    """Return the variables of one day except the dead animals.

    Args:
        scales: the free factors.
        noise: noise of each node, added to the square root of its forecast.
        before: N, P and E of the day before: values, or the names of the nodes that hold them.
        today: suffix of the names of this day's nodes.
        first: index of N_in among the actions; the juveniles and the adults of the day before follow.
    """
    factors = {node: (rates.gain, rates.loss) for node, rates in scales if node != "N"}

    def variable(
        node: str, mechanism: Callable[..., Floats], carried: str, parents: str, actions: tuple[int, ...]
    ) -> Variable:
        """Return a node's variable; ``carried`` has the letters of nodes of the day before, ``parents`` of today's."""
        values, names = _split_by_type(before, carried)
        return Variable(
            f"{node}{today}",
            partial(mechanism, *factors.get(node, (scales.N,)), *values),
            (*names, *(f"{parent}{today}" for parent in parents)),
            actions,
            noise[node],
        )

    return [
        variable("N", nitrogen, "NP", "", (first,)),
        variable("P", algae, "P", "N", ()),
        variable("J", juveniles, "", "P", (first + 1, first + 2)),
        variable("A", adults, "", "P", (first + 2,)),
        variable("E", eggs, "E", "PA", ()),
    ]


def _split_by_type(before: Mapping[str, Floats | str], nodes: str) -> tuple[list[Floats], list[str]]:
    """Return the values of the given nodes of the day before, and the names of nodes that hold such values."""
    carried = [before[node] for node in nodes]
    values = [value for value in carried if not isinstance(value, str)]
    names = [name for name in carried if isinstance(name, str)]
    return values, names


def daily_map(
    scales: Scales, yesterday: Mapping[str, Floats], noise: Mapping[str, GaussianMixture]
) -> StructuralCausalModel:
    """Return one day of the chemostat; its soft parameters are N_in today and the juveniles and adults of yesterday.

    Args:
        scales: the free factors.
        yesterday: values of N, P, E and D: numbers, or arrays that broadcast with actions and noise.
        noise: noise of each node, added to the square root of its forecast.
    """
    died = partial(_negated_dead, scales.D.gain, scales.D.loss, yesterday["D"])
    variables = [
        *_population_variables(scales, noise, yesterday, "", 0),
        Variable("Y", died, ("J", "A"), (), noise["D"]),
    ]
    return StructuralCausalModel(variables, reward="Y")


def _negated_mean(*args: Floats) -> Floats:
    *dead_animals, u = args
    return u - add_up(dead_animals) / len(dead_animals)


def days_in_a_row(
    scales: Scales, yesterday: Mapping[str, Floats], noise: Mapping[str, GaussianMixture], days: int
) -> StructuralCausalModel:
    """Return the daily map day after day: N1, P1, J1, A1, E1, D1, N2 and so on; Y is minus the mean of D1, D2, ...

    Each day has the three soft parameters of :func:`daily_map`, in its order. Juveniles and adults are counted and then
    set, so a day's J and A lead to its D and not to the next day.
    """
    variables: list[Variable] = []
    before: Mapping[str, Floats | str] = yesterday
    for day in range(1, days + 1):
        variables += _population_variables(scales, noise, before, str(day), len(DOMAINS) * (day - 1))
        values, names = _split_by_type(before, "D")
        died = partial(dead, scales.D.gain, scales.D.loss, *values)
        variables.append(Variable(f"D{day}", died, (*names, f"J{day}", f"A{day}"), (), noise["D"]))
        before = {node: f"{node}{day}" for node in "NPED"}
    variables.append(Variable("Y", _negated_mean, tuple(_dead_names(days))))
    return StructuralCausalModel(variables, reward="Y")


def _dead_names(days: int) -> list[str]:
    return [f"D{day}" for day in range(1, days + 1)]


def chemostat(coefficients: str | None = None) -> Problem:
    """Chemostat: choose today's nitrogen supply and yesterday's predators so that few animals die.

    Nodes: dissolved nitrogen N and algae P in umol N/l, juvenile and adult rotifers J and A and their eggs E per ml,
    and Y = -D with D the dead animals per ml. Actions: N_in in umol N/l, and J and A of the day before. All else of the
    day before is as on the median day of the measurements. More food and more animals mean more deaths along every
    path, so the optimum has no rotifers on the day before; N_in does not matter then.

    Args:
        coefficients: path of a file that ``examples/fit_chemostat.py`` wrote; None for the fit to experiment C1.
    """
    fitted = load_coefficients(coefficients)
    return Problem(
        name="Chemostat",
        scm=daily_map(fitted.scales, dict(fitted.yesterday), fitted.noise.distributions()),
        description="A day of algae and rotifers in a chemostat; the reward is minus the density of dead animals.",
        citation=f"{PAPER}, sec. 7.5 and 11.6; data: {fitted.source}",
        action_domains=list(DOMAINS.values()),
        null_action=_typical(fitted),
        noise_known=False,
    )


def chemostat_days(days: int, coefficients: str | None = None) -> Problem:
    """Chemostat over some days: choose nitrogen supply and predators day by day so that few animals die on average.

    Each day follows :func:`chemostat` and starts where the day before ended: dissolved nitrogen, algae, eggs and dead
    animals are carried over, and predators are set by the action. Aglietti et al. (2021), Dynamic causal Bayesian
    optimization, from whom the paper takes equations and data, play several days in this way; the paper itself stops
    after one day. On one day only two of the three actions matter, and the best of a few random actions is nearly
    optimal. This holds for other domains (such as the inner half of the data) and other rewards (deaths per animal, the
    distance from a typical day), but not in more coordinates.

    Action coordinates 3 (t - 1), 3 (t - 1) + 1 and 3 (t - 1) + 2 are N_in of day t and the J and A with which it
    begins. More food and more animals mean more deaths along every path, so no rotifers at all is optimal, and N_in
    does not matter then. Since the experimenter defines Y, agents know how it depends on D1, D2, ...

    Args:
        days: number of days, 1 to 100.
        coefficients: path of a file that ``examples/fit_chemostat.py`` wrote; None for the fit to experiment C1.
    """
    days = whole_number("days", days, at_least=1, at_most=MAX_DAYS)
    fitted = load_coefficients(coefficients)
    typical = _typical(fitted)
    return Problem(
        name="Chemostat",
        scm=days_in_a_row(fitted.scales, dict(fitted.yesterday), fitted.noise.distributions(), days),
        description="Some days of algae and rotifers in a chemostat; the reward is minus the mean density of the dead.",
        citation=f"{PAPER}, sec. 7.5 and 11.6; data: {fitted.source}",
        action_domains=list(DOMAINS.values()) * days,
        action_names=[name for t in range(1, days + 1) for name in (f"N_in{t}", f"J_before{t}", f"A_before{t}")],
        null_action=typical * days,
        optimal_action=[typical[0], 0.0, 0.0] * days,
        composition=partial(compositions.negated_mean, tuple(_dead_names(days))),
        noise_known=False,
    )


def _typical(fitted: Coefficients) -> list[float]:
    yesterday = dict(fitted.yesterday)
    return [(yesterday[name] - low) / (high - low) for name, (low, high) in DOMAINS.items()]
