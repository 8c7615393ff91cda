"""Check the recorded optima of the survey's systems by closed forms, quadrature and grids, without the package's code.

Prints for each environment of the suite ``survey2026`` the optimum recorded in the registry, the one computed here, and
their difference in units of the recorded standard error. The equations are written down again below; only the recorded
optima come from the package.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar

Array = np.ndarray
Mean = Callable[..., Array]

NORMAL_NODES, NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(96)
NORMAL_WEIGHTS = NORMAL_WEIGHTS / NORMAL_WEIGHTS.sum()
UNIFORM_NODES, UNIFORM_WEIGHTS = np.polynomial.legendre.leggauss(64)
UNIFORM_WEIGHTS = UNIFORM_WEIGHTS / 2.0
GRID = 200_001


def highest(mean: Mean, low: float, high: float, points: int = GRID) -> float:
    """Return the maximum of a function of one variable over an interval: by a grid, then a search around the best."""
    grid = np.linspace(low, high, points)
    best = int(np.argmax(mean(grid)))
    left, right = grid[max(0, best - 1)], grid[min(points - 1, best + 1)]
    refined = minimize_scalar(lambda x: -float(mean(np.array(x))), bounds=(left, right), method="bounded")
    return max(-float(refined.fun), *(float(mean(np.array(x))) for x in (left, right, grid[best])))


def with_normal(mean: Mean, std: float) -> Mean:
    """Return the function x -> E mean(x + std N), by quadrature."""
    return lambda x: mean(np.asarray(x)[..., None] + std * NORMAL_NODES) @ NORMAL_WEIGHTS


# Chains of three --------------------------------------------------------------------------------------------


def expected_reward(z: Array) -> Array:
    """Return E[Y | do(Z = z)] of the chains, which is negated here as in the package."""
    return np.exp(-z / 20.0) - np.cos(z)


def toy_graph() -> float:
    by_x = highest(lambda x: with_normal(expected_reward, 0.1)(np.exp(-x)), -5.0, 5.0, 20_001)
    return max(highest(expected_reward, -5.0, 20.0), by_x)


def synthetic_2() -> float:
    by_x = highest(lambda x: with_normal(expected_reward, 1.0)(np.exp(-x)), -3.0, 2.0, 20_001)
    return max(highest(expected_reward, -1.0, 1.0), by_x)


# Two confounders --------------------------------------------------------------------------------------------


def synthetic() -> float:
    """Return the bound that {D, E} reach: the cosine and the sine are -1, and the other terms have mean zero."""
    best = highest(lambda d: -np.cos(d), -5.0, 5.0) + highest(lambda e: -np.sin(e), -6.0, 3.0)
    assert math.isclose(best, 2.0, abs_tol=1e-9)
    return best


# Chain ------------------------------------------------------------------------------------------------------


def chain() -> float:
    """Return the best value: without setting Z, E[3 Z X] = -3/2; with Z set to a number it is 0. W is at most 1."""
    natural_product = float(3.0 * (NORMAL_NODES * (-0.5 * NORMAL_NODES)) @ NORMAL_WEIGHTS)
    return highest(lambda w: w + max(0.0, natural_product), -1.0, 1.0, 3)


def chain_by_policy() -> float:
    """Return the mean over x, by the trapezoidal rule on a fine grid, of the value of the best Z in [-1, 1]."""
    x = np.linspace(-10.0, 10.0, 200_001)
    density = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    best = np.max([3.0 * z * x for z in np.linspace(-1.0, 1.0, 5)], axis=0)
    return 1.0 + float(np.trapezoid(best * density, x))


# Epidemiology -----------------------------------------------------------------------------------------------


def epidemiology() -> float:
    """Return the optimum: T by quadrature in pieces shorter than a wave; the mean of the sine falls as 1 / (4 L)."""
    edges = np.linspace(4.0, 8.0, 101)
    nodes, node_weights = np.polynomial.legendre.leggauss(16)
    t = ((edges[1:] + edges[:-1])[:, None] / 2.0 + 0.02 * nodes).ravel()
    weights = np.tile(node_weights / 200.0, 100)

    def by_load(load: Array) -> Array:
        load = np.asarray(load)[..., None]
        return -(np.sin(-load + 2.0 * (4.0 + load * t)) @ weights)

    best = highest(by_load, 0.479, 60.0, 6_001)
    assert best > max(1.0 / (4.0 * 60.0), natural_load_sine())
    return 0.994 - 0.5 - float(np.cos(4.0 * t) @ weights) + best


def natural_load_sine() -> float:
    """Return an upper bound of E[L] without intervention: four standard errors above a mean of many draws."""
    rng = np.random.default_rng(0)
    t = rng.uniform(4.0, 8.0, 100_000)
    load = np.exp(0.5 * t + rng.standard_normal(len(t)))
    values = -np.sin(-load + 2.0 * (4.0 + load * t))
    return float(values.mean() + 4.0 * values.std() / math.sqrt(len(t)))


# Healthcare -------------------------------------------------------------------------------------------------


def healthcare() -> float:
    """Return the optimum: age and body mass index by quadrature, doses on a grid with corners, drugs set or not."""

    def logistic(x: Array) -> Array:
        return 1.0 / (1.0 + np.exp(-x))

    age = (65.0 + 10.0 * UNIFORM_NODES)[:, None]
    bmi = 27.0 - 0.01 * age + 0.7 * NORMAL_NODES
    weights = np.outer(UNIFORM_WEIGHTS, NORMAL_WEIGHTS)
    doses = [*np.linspace(0.0, 1.0, 21), None]

    def mean(aspirin: float | None, statin: float | None) -> float:
        a = logistic(-8.0 + 0.1 * age + 0.03 * bmi) if aspirin is None else aspirin
        s = logistic(-13.0 + 0.1 * age + 0.2 * bmi) if statin is None else statin
        cancer = logistic(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * s + 0.02 * a)
        return -float(np.sum(weights * (6.8 + 0.04 * age - 0.15 * bmi - 0.6 * s + 0.55 * a + cancer)))

    return max(mean(a, s) for a in doses for s in doses)


# Linear systems ---------------------------------------------------------------------------------------------

Equation = tuple[float, dict[str, float]]  # intercept and slopes

ECOLOGY: dict[str, Equation] = {
    "E": (24.184130, {}),
    "S": (36.591624, {}),
    "N": (0.492065, {}),
    "X": (18.798174, {"E": 15.797384}),
    "C": (0.373420, {"N": -0.002400}),
    "L": (6665.081996, {"C": -10737.462582}),
    "P": (8.427706, {"X": -0.000965531}),
    "O": (3.245248, {"E": 0.094332, "S": 0.006753921, "X": -0.005737087}),
    "Y": (211.422555, {"L": -3.012577e-5, "N": 0.016679591, "P": -25.719277, "O": -0.500403}),
}
REEF = {"N": (-2.0, 5.0), "O": (2.0, 4.0), "C": (0.0, 1.0)}

PROTEIN: dict[str, Equation] = {
    "PKC": (53.5, {}),
    "PKA": (554.390731, {"PKC": 0.841152557}),
    "Raf": (62.199046, {"PKC": -0.177745091, "PKA": -0.000379207522}),
    "Mek": (-1.090275, {"PKC": 0.0396624572, "PKA": -0.000652026685, "Raf": 0.520844705}),
    "Erk": (-23.248743, {"PKA": 0.0817067325, "Mek": -0.0298858143}),
}
CELL = {"PKC": (0.5, 106.5), "PKA": (1.45, 4491.5), "Mek": (0.5, 389.5)}


def corners(system: dict[str, Equation], domains: dict[str, tuple[float, float]], sign: float) -> float:
    """Return the best mean of the last variable: it is linear in the set values, so best at a corner of a set's box."""

    def mean(chosen: dict[str, float]) -> float:
        means: dict[str, float] = {}
        for name, (intercept, slopes) in system.items():
            own = intercept + sum(slope * means[parent] for parent, slope in slopes.items())
            means[name] = chosen.get(name, own)
        return sign * means[list(system)[-1]]

    settings: list[dict[str, float]] = [{}]
    for name, ends in domains.items():
        settings += [{**setting, name: end} for setting in settings for end in ends]
    return max(map(mean, settings))


# Function networks ------------------------------------------------------------------------------------------


def dropwave() -> float:
    return highest(lambda r: (1.0 + np.cos(12.0 * r)) / (2.0 + 0.5 * r * r), 0.0, 5.12 * math.sqrt(2.0))


def alpine2() -> float:
    """A product of six factors with one minus sign: an odd number of them at the lowest, the others at the highest."""

    def factor(x: Array) -> Array:
        return np.sqrt(x) * np.sin(x)

    top, bottom = highest(factor, 0.0, 10.0), -highest(lambda x: -factor(x), 0.0, 10.0)
    return max(-(top ** (6 - k)) * bottom**k for k in range(7))


def rosenbrock() -> float:
    """Minus a sum of squares, which are all 0 where every coordinate is 1: inside the box."""
    x = np.ones(5)
    return -float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))


def ackley() -> float:
    """The square and the cosine of each coordinate are best at 0, which reaches both bounds at once."""
    mean_square, mean_cosine = 0.0, 1.0
    return 20.0 * math.exp(-0.2 * math.sqrt(mean_square)) + math.exp(mean_cosine) - 20.0 - math.e


OPTIMA: dict[str, Callable[[], float]] = {
    "CBO/SurveyToyGraph-v0": toy_graph,
    "CBO/SurveySynthetic-v0": synthetic,
    "CBO/SurveySynthetic2-v0": synthetic_2,
    "CBO/SurveyChain-v0": chain,
    "CBO/SurveyEpidemiology-v0": epidemiology,
    "CBO/SurveyHealthcare-v0": healthcare,
    "CBO/SurveyEcology-v0": lambda: corners(ECOLOGY, REEF, 1.0),
    "CBO/SurveyProtein-v0": lambda: corners(PROTEIN, CELL, -1.0),
    "CBO/SurveyChain-Contextual-v0": chain_by_policy,
    "CBO/SurveyChainPolicy-v0": chain_by_policy,
    "CBO/Ackley-v0": ackley,
    "CBO/Rosenbrock-v0": rosenbrock,
    "CBO/Dropwave-v0": dropwave,
    "CBO/Alpine2-v0": alpine2,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the same, which takes a second or two")
    parser.parse_args(arguments)

    from cbo_gym.envs.registry import find_entry

    print(f"{'environment':30} {'recorded':>14} {'error':>9} {'here':>14} {'errors apart':>12}")
    for env_id, find in OPTIMA.items():
        entry = find_entry(env_id)
        assert entry is not None
        assert entry.optimum is not None
        recorded, error, here = entry.optimum.value, entry.optimum.standard_error, find()
        apart = f"{(recorded - here) / error:+.2f}" if error else f"({recorded - here:+.1g})"
        print(f"{env_id:30} {recorded:14.8f} {error:9.1g} {here:14.8f} {apart:>12}")


if __name__ == "__main__":
    main()
