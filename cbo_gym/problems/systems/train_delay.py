"""TrainDelay: delays that spread between twenty German stations, a cyclic separable SEM fitted to real hours."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.scm import Component, Empirical, Linear, Polynomial, SeparableSEM, Sum, Tanh

CITATION = (
    "Bauschmann & Maghsudi (2026), Graph structured combinatorial semi-bandit, sec. V-B; coefficients fitted to hourly "
    "delays of 24.06. to 14.07.2024, github.com/Nokkyuu/Fantastic_trains_and_when_to_find_them (MIT licence)"
)
SUPER_ARM_SIZE = 6
FILE_NAME = "train_delay.yaml"

#: The functions of which every edge is a combination; y is in units of ``unit_minutes``
SHAPES: dict[str, Component] = {
    "linear": Linear(),
    "cubic": Polynomial((0.0, 0.0, 1.0)),
    "tanh": Tanh(1.0, 4.0, 0.0),
    "tanh_shifted_by_half": Tanh(1.0, 4.0, -2.0),
    "tanh_shifted_by_one": Tanh(1.0, 4.0, -4.0),
}


def network_sem(fitted: dict[str, Any]) -> SeparableSEM:
    """Return the system of a fitted network, as ``examples/fit_train_delay.py`` writes it.

    Raises:
        ArgumentError: if the system is not a contraction.
    """
    names = [station["name"] for station in fitted["stations"]]
    index = {name: i for i, name in enumerate(names)}
    components = {
        (index[edge["effect"]], index[edge["cause"]]): _combine(edge["coefficients"]) for edge in fitted["edges"]
    }
    signals = [Empirical(station["quantiles"]) for station in fitted["stations"]]
    return SeparableSEM(signals, components, names=names)


def _combine(coefficients: dict[str, float]) -> Component:
    components = tuple(SHAPES[name].multiply(factor) for name, factor in coefficients.items())
    return components[0] if len(components) == 1 else Sum(components)


@cache
def load_fit() -> dict[str, Any]:
    return yaml.safe_load(Path(__file__).with_name(FILE_NAME).read_text(encoding="utf-8"))


def train_delay() -> Problem:
    """TrainDelay: 20 stations, super arms of up to 6; which stations' own delays add up to most in the network?

    The signal b of a station is the excess of its trains' stays over the plan in one hour, minus the smallest excess
    seen there. y is the delay of its trains, minus the delay in a network in which every station has its smallest
    excess. Both are in units of 11.9 minutes (``unit_minutes`` of the fitted file). The payoff is the sum of y over all
    stations.

    The stations: BADH Bad Hersfeld, BEBR Bebra, EISN Eisenach, ERFU Erfurt, FULD Fulda, GOET Goettingen, GOSL Goslar,
    GOTH Gotha, HALB Halberstadt, JENG Jena-Goeschwitz, JENP Jena Paradies, JENW Jena West, KASH Kassel main station,
    KASW Kassel-Wilhelmshoehe, LEIN Leinefelde, NEUD Neudietendorf, NORD Nordhausen, NORT Northeim, SAAL Saalfeld,
    WEIM Weimar.
    """
    sem = network_sem(load_fit())
    return Problem(
        name="TrainDelay",
        scm=sem,
        description="Twenty German stations whose delays spread along cycles of direct connections.",
        citation=CITATION,
        action_domains=[(0.0, 1.0)] * sem.action_dim,
        composition=sem.payoff,
        noise_known=False,
        modes=[SuperArms(size=SUPER_ARM_SIZE, exogenous=sem.exogenous, components=tuple(SHAPES.values()))],
    )
