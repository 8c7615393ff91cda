"""Arguments of the builders that are out of range: the error names the argument, what is allowed and what was given."""

import math

import numpy as np
import pytest

from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.problems import build_problem
from cbo_gym.problems.base import mixture_noise

NETWORKS = "cbo_gym.problems.systems.function_networks:"
TWO = [[0.5, -0.5, 0.05], [0.5, 0.5, 0.1]]
NOISE = "noise_std must be .* at least 0; given"
RATES = r"reference must hold rates in \[0, 1\], shape \(3, 2, 2\); given shape"
COORDINATES = "some, not all, of the coordinates 0 to 4"
CASES = {
    "binary_tree:binary_tree": [
        *(({"depth": depth}, f"depth must be a whole number from 1 to 6; given {depth}") for depth in (0, 7)),
        ({"noise_std": -1.0}, NOISE),
    ],
    "causal_bandits:parallel_bandit": [
        ({"causes": 1}, "causes must be .*from 2 to 200"),
        ({"rare": 0}, "rare must be .*at least 1"),
        ({"causes": 3, "rare": 3}, "rare must be less than the number of causes, 3; given 3"),
        ({"epsilon": 0.6}, "epsilon must be a number above 0 and at most 0.5; given 0.6"),
        ({"q": 0.7}, "q must be a number from 0 to 0.5; given 0.7"),
    ],
    "chemostat:chemostat_days": [
        ({"days": days}, "days must be a whole number from 1 to 100; given") for days in (0, 2.0, 101)
    ],
    "contextual:coca_large": [
        ({"scopes": []}, "at least one scope"),
        ({"scopes": [{"Xt1": ["C5"]}]}, "cycle"),
    ],
    "contextual:contextual_network": [
        *(
            ({"network": f"{NETWORKS}rosenbrock", "contexts": contexts}, COORDINATES)
            for contexts in ((), (0, 1, 2, 3, 4), (5,))
        ),
        ({"network": f"{NETWORKS}ackley", "noise_std": 1.0}, "noise_std"),
    ],
    "CBO/Epidemic-v0": [
        ({"reference": reference}, RATES)
        for reference in ([[0.3, 0.05]], [[[2.0, 0], [0, 0]]] * 3, [[[-0.1, 0], [0, 0]]] * 3, [])
    ],
    "erdos_renyi:erdos_renyi": [
        ({"nodes": 1}, "nodes must be a whole number from 2 to 200; given 1"),
        ({"nodes": 200, "density": 26}, "at most 25; given 26"),
        ({"density": 0.0}, "density must be above 0 and at most 4.5"),
        ({"nonlinear": 1}, "nonlinear must be True or False"),
        ({"instance_seed": -1}, "instance_seed must be at least 0"),
    ],
    "CBO/Alpine2-DGM-v0": [
        ({"noise_scale": scale}, "noise_scale must be a finite number above 0") for scale in (0.0, math.inf)
    ],
    "function_networks:rosenbrock": [
        *(({"noise_std": std}, f"{NOISE} {std}") for std in (-0.1, math.nan, math.inf)),
        *(({"dim": dim}, "dim must be") for dim in (1, 2.5, "3")),
    ],
    "linear_sem:hierarchical": [({"degree": 5, "layers": 4}, "at most 16")],
    "CBO/PooledTesting-v0": [
        ({"sensitivity": 0.0}, r"sensitivity must be a finite number in \(0, 1\]; given 0.0"),
        ({"dilution": 0.0}, "dilution must be a finite number above 0; given 0.0"),
        ({"false_positive_rate": 1.0}, r"false_positive_rate must be a finite number in \[0, 1\); given 1.0"),
        ({"test_cost": -0.1}, "test_cost must be a finite number at least 0"),
        ({"isolation_cost": math.nan}, "isolation_cost must be"),
    ],
    "ssem:ssem_periodic": [
        *(({"instance_seed": seed}, r"instance_seed must be .*at least 0; given") for seed in (-1, 1.5)),
        ({"payoff": "square"}, "payoff must be None or a Component"),
        ({"activation": np.tanh}, "activation must be None or a Component"),
        ({"model_noise_std": -1.0}, "model_noise_std must be a finite number"),
        ({"nonlinear_about": "zero"}, r"nonlinear_about must be one of \['masked means', 'means'\]; given 'zero'"),
    ],
}


@pytest.mark.parametrize(
    ("builder", "arguments", "message"),
    [(builder, *case) for builder, cases in CASES.items() for case in cases],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_arguments_out_of_range_are_named(builder: str, arguments: dict[str, object], message: str) -> None:
    kwargs: dict[str, object] = {}
    if builder.startswith("CBO/"):
        entry = find_entry(builder)
        builder, kwargs = entry.problem, entry.kwargs
    else:
        builder = f"cbo_gym.problems.systems.{builder}"
    with pytest.raises(ArgumentError, match=message):
        build_problem(builder, **{**kwargs, **arguments})


@pytest.mark.parametrize(
    ("components", "std", "scale", "message"),
    [
        (TWO, 0.0, 1.0, "noise_std must be a finite number above 0; given 0.0"),
        (TWO, 0.1, -1.0, "noise_scale must be a finite number above 0; given -1.0"),
        ([], 0.1, 1.0, "at least one"),
        ([[0.5, 1.0]], 0.1, 1.0, "triples"),
        ([[0.0, 1.0, 0.1]], 0.1, 1.0, "weight and c above 0"),
        ([[1.0, math.inf, 0.1]], 0.1, 1.0, "finite numbers"),
    ],
)
def test_invalid_mixtures_say_what_is_wrong(components: list, std: float, scale: float, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        mixture_noise(components, std, scale)
