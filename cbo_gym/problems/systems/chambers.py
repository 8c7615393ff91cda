"""The Causal Chambers of Gamella, Peters & Bühlmann (2025), a wind tunnel and a light tunnel, from published models.

The equations and parameters are those of the mechanistic models of the paper's Appendix IV, and of the simulators of
the package ``causalchamber`` 0.2.8, which tests compare with them. The goals are ours: the paper has none.

The published graphs have arrows that the models lack: in the wind tunnel each fan also changes the speed and current of
the other one, and the hatch changes both speeds. Here these arrows are missing, as they are in the simulators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cbo_gym._util.arguments import require_truth_value
from cbo_gym.actions import Interval
from cbo_gym.problems.base import Problem
from cbo_gym.problems.systems.building import OWN_NOISE, hard_problem, read_equations
from cbo_gym.scm import StructuralCausalModel, Uniform

PAPER = (
    "Gamella, Peters & Bühlmann (2025), Causal chambers as a real-world physical testbed for AI methodology, App. IV"
)

# Least load that changes a fan's speed; fans at full load in rpm; pressure of a fan without airflow in Pa.
MIN_LOAD, MAX_RPM, STATIC_PRESSURE = 0.1, 3000.0, 74.82473949999999
FANS = ("in", "out")
# Current in A of a fan without load, and the current that full load adds.
NO_LOAD_CURRENT, LOAD_CURRENT = 0.166, 0.27 - 0.166
# Airflow ratio of the tunnel with the hatch closed, and the ratio that the open hatch adds.
CLOSED_RATIO, HATCH_RATIO = 0.75, 0.15

COLOURS = ("red", "green", "blue")
# Response of an infrared and of a visible sensor to red, green and blue.
RESPONSE = {"ir": (4.34165202, 2.8594438, 1.91565691), "vis": (0.89410569, 1.58679242, 2.68477163)}
# Transmission of each colour by one polariser, by two that are aligned, and by two that are crossed.
ONE_POLARISER = (0.42685688, 0.41231782, 0.46652526)
ALIGNED, CROSSED = (0.2909342, 0.29624314, 0.30526271), (0.00431032, 0.01447611, 0.02041075)
# Light that reaches sensors 2 and 3, relative to sensor 1, by the inverse square law for their distances in m.
LIGHT_AT_2, LIGHT_AT_3 = (0.1 / 0.17) ** 2, (0.1 / 0.25) ** 2
# Gain of a sensor: the size of its diode (infrared large, visible medium) and the longest exposure.
GAIN = {"ir": 2**5, "vis": 2**4}
# Current of the light source in counts: without light, and for each unit of red, green and blue.
DARK_CURRENT, COLOUR_CURRENT = 58.13307318503893, (0.12834946, 0.12870338, 0.13078523)


def _chamber(
    name: str,
    actuators: Mapping[str, Interval],
    equations: Mapping[str, str],
    noise: Mapping[str, float],
    description: str,
    hard: bool,
) -> Problem:
    """Return a chamber whose actuators are soft parameters or, if ``hard``, nodes that are random unless set."""
    require_truth_value("hard", hard)
    if hard:
        natural = {actuator: Uniform(*domain) for actuator, domain in actuators.items()}
        variables = read_equations({**dict.fromkeys(actuators, OWN_NOISE), **equations}, {**natural, **noise})
        return hard_problem(name, variables, actuators, description, PAPER, noise_known=False)
    return Problem(
        name,
        StructuralCausalModel(read_equations(equations, noise, actions=list(actuators)), reward="Y"),
        description,
        PAPER,
        action_domains=list(actuators.values()),
        action_names=list(actuators),
        noise_known=False,
    )


def wind_tunnel(hard: bool = False) -> Problem:
    """Wind tunnel: two fans and a hatch, models A1, B1 and C3.

    The goal is that of a clean room: 5 Pa above the ambient pressure, much air exchanged, little current. The noise of
    the barometer is that of the paper's simulations, 0.2 Pa; we chose the noise of the other sensors.

    Args:
        hard: whether loads and hatch are nodes, uniform on their domains unless set, instead of soft parameters.
    """
    ratio = f"({CLOSED_RATIO} + {HATCH_RATIO} * hatch / 45.0)"
    equations = {
        **{f"rpm_{fan}": f"{MAX_RPM} * load_{fan} + u" for fan in FANS},
        # Powers of a single number and of an array may differ in their last digit; products do not.
        **{
            f"current_{fan}": f"{NO_LOAD_CURRENT} + {LOAD_CURRENT} * load_{fan} * load_{fan} * load_{fan} + u"
            for fan in FANS
        },
        # The closed form of the quadratic equation of model C3: where a fan's linear characteristic meets the impedance
        # of the tunnel, the pressure is 1 - ratio times the pressure without airflow.
        "pressure_downwind": f"{STATIC_PRESSURE} * (1.0 - {ratio}) * (load_in * load_in - load_out * load_out) + u",
        "Y": "0.001 * (rpm_in + rpm_out) - 50.0 * (current_in + current_out - 0.332)"
        " - ((pressure_downwind - 5.0) / 2.0)**2",
    }
    noise = {"rpm_in": 10.0, "rpm_out": 10.0, "current_in": 0.001, "current_out": 0.001, "pressure_downwind": 0.2}
    return _chamber(
        "WindTunnel",
        # A load below the least one would act like the least load, and a load of 0 would stop the fan.
        {"load_in": (MIN_LOAD, 1.0), "load_out": (MIN_LOAD, 1.0), "hatch": (0.0, 45.0)},
        equations,
        noise,
        "Loads of an intake and an exhaust fan and a hatch in degrees; the reward wants 5 Pa of overpressure, air and "
        "little current.",
        hard,
    )


def light_tunnel(hard: bool = False) -> Problem:
    """Light tunnel: a coloured light, two polarisers and three pairs of sensors, by the law of Malus (model E1).

    The goal is a dose of visible light: 1500 counts before the second polariser and 300 behind it, with little infrared
    light and current. The standard deviation of the sensors' noise, 75 counts, follows from the paper's fits of model
    E1 to measurements: R squared of .934, .970 and .994 at brightness 64, 128 and 255, where the amplitude is 2774
    counts at 255. It was measured at the third infrared sensor and is used for all; we chose the noise of the current.

    Args:
        hard: whether colours and polarisers are nodes, uniform on their domains unless set, instead of soft parameters.
    """
    malus = "cos((pol_1 - pol_2) * pi / 180.0)**2"
    polarised = [aligned - crossed for aligned, crossed in zip(ALIGNED, CROSSED, strict=True)]
    equations = {"current": f"{DARK_CURRENT} + {_weigh(COLOUR_CURRENT)} + u"}
    for sensor, response in RESPONSE.items():
        gain = GAIN[sensor]
        equations[f"{sensor}_1"] = f"{gain} * {_weigh(response)} + u"
        equations[f"{sensor}_2"] = f"{gain * LIGHT_AT_2} * {_weigh(response, ONE_POLARISER)} + u"
        equations[f"{sensor}_3"] = (
            f"{gain * LIGHT_AT_3} * ({_weigh(response, polarised)} * {malus} + {_weigh(response, CROSSED)}) + u"
        )
    equations["Y"] = (
        "-((vis_2 - 1500.0) / 300.0)**2 - ((vis_3 - 300.0) / 100.0)**2 - 0.0005 * ir_2 - 0.02 * (current - 58.0)"
    )
    noise = {name: 75.0 for name in equations if name != "Y"} | {"current": 1.0}
    return _chamber(
        "LightTunnel",
        dict.fromkeys(COLOURS, (0.0, 255.0)) | dict.fromkeys(("pol_1", "pol_2"), (-90.0, 90.0)),
        equations,
        noise,
        "A coloured light and the angles of two polarisers; the reward wants a dose of visible light before and behind "
        "the second polariser, little infrared light and little current.",
        hard,
    )


def _weigh(*factors: Sequence[float]) -> str:
    """Return the sum of the colours, each times its factors, as an expression."""
    weights = np.prod(factors, axis=0).tolist()
    return "(" + " + ".join(f"{weight} * {colour}" for weight, colour in zip(weights, COLOURS, strict=True)) + ")"
