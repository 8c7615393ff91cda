"""Problems whose actions are of several kinds: numbers, steps, integers, categories and logarithmic scales.

Alpine2 and PSAGraph with such actions, and a fermenter whose medium is chosen along with its settings. The number of a
category in an equation is its index.
"""

from __future__ import annotations

import math
from itertools import pairwise

from cbo_gym._util.arguments import require_truth_value
from cbo_gym.actions import Categorical, Integer, Range
from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.problems.systems.building import hard_problem, read_equations
from cbo_gym.problems.systems.function_networks import ALPINE2_NODES, ALPINE2_PEAK, FACTOR
from cbo_gym.problems.systems.hard_graphs import AGES, AGLIETTI, CANCER, NATURAL_ASPIRIN, NATURAL_STATIN
from cbo_gym.scm import Normal, StructuralCausalModel, Uniform

# Citation of a problem without a paper.
NO_PAPER = "none"

# Values of Alpine2's third action by category; only B's factor is large.
ALPINE2_CATEGORIES = {"A": 2.0, "B": 4.8, "C": 7.0, "D": 0.5, "E": 9.4}
# Optimal dose in mg and greatest effect of each statin.
STATINS = {"none": (20.0, 0.0), "A": (40.0, 0.4), "B": (10.0, 1.0), "C": (20.0, 0.9)}
# Growth, best temperature and acid of each medium.
MEDIA = {"A": (0.7, 36.0, 0.5), "B": (1.0, 31.0, 1.6), "C": (0.9, 34.0, 0.8), "D": (0.4, 38.0, 0.3)}


def by_category(name: str, values: list[float]) -> str:
    """Return an expression for a value that depends on a category: ``(2.0 * (a2 == 0) + 4.8 * (a2 == 1))``."""
    return "(" + " + ".join(f"{value} * ({name} == {index})" for index, value in enumerate(values)) + ")"


def mixed_alpine2(noise_std: float = 0.0) -> Problem:
    """Alpine2 with two continuous actions, two integers, one in steps of 0.5, and one of five categories.

    Args:
        noise_std: standard deviation of the noise on each node.
    """
    actions = [f"a{i}" for i in range(6)]
    values = {name: name for name in actions} | {"a2": by_category("a2", list(ALPINE2_CATEGORIES.values()))}
    equations = {"X0": f"u - {FACTOR.format('a0')}"}
    for name, (previous, node) in zip(actions[1:], pairwise(ALPINE2_NODES), strict=True):
        equations[node] = f"{FACTOR.format(values[name])} * {previous} + u"
    peak = ALPINE2_PEAK / 10.0
    return Problem(
        "Alpine2",
        StructuralCausalModel(read_equations(equations, gaussian_noise(noise_std), actions=actions), reward="Y"),
        "A chain of products sqrt(x) sin(x), whose actions are numbers, steps, integers and a category.",
        f"{NO_PAPER}; after Astudillo & Frazier (2021)",
        action_domains=[
            (0.0, 10.0),
            Integer(0, 10),
            Categorical(ALPINE2_CATEGORIES),
            Range(0, 10, step=0.5),
            Integer(0, 10),
            (0.0, 10.0),
        ],
        # A zero factor anywhere would wipe out the whole chain.
        null_action=(0.5,) * 6,
        # The negative factor of category B cancels the sign of the first node.
        optimal_action=(peak, 0.8, 0.25, 0.8, 0.8, peak),
        noiseless_mean=True,
    )


def mixed_psa() -> Problem:
    """PSAGraph with up to four tablets of aspirin a day, one of three statins or none, and the dose of the statin.

    Patients take them according to their age and body mass index. Each statin has its own best dose; statin C reacts
    with a single tablet of aspirin.
    """
    doses, effects = zip(*STATINS.values(), strict=True)
    distance = f"(log(Dose) - log({by_category('Statin', list(doses))}))"
    effect = f"{by_category('Statin', list(effects))} * exp(-2.0 * {distance}**2)"
    statin, aspirin = NATURAL_STATIN, NATURAL_ASPIRIN
    equations = {
        "Age": "u",
        "BMI": "27.0 - 0.01 * Age + u",
        "Aspirin": f"(4.0 * {aspirin} + 0.5) // 1.0",
        "Statin": f"1.0 * (({statin}) > 0.1) + 1.0 * (({statin}) > 0.2) + 1.0 * (({statin}) > 0.4)",
        "Dose": "exp(u)",
        "Effect": effect,
        "Cancer": CANCER.replace("Statin", "Effect").replace("Aspirin", "Aspirin / 4.0"),
        "Y": "-(6.8 + 0.04 * Age - 0.15 * BMI - 1.2 * Effect + 0.55 * Aspirin / 4.0"
        " - 0.4 * (Statin == 3) * (Aspirin == 1) + Cancer + u)",
    }
    noise = {"Age": AGES, "BMI": Normal(0.0, 0.7), "Dose": Uniform(0.0, math.log(80.0)), "Y": Normal(0.0, 0.4)}
    return hard_problem(
        "PSAGraph",
        read_equations(equations, noise),
        {"Aspirin": Integer(0, 4), "Statin": Categorical(STATINS), "Dose": Range(1, 80, scale="log")},
        "Tablets of aspirin, a statin and its dose; the reward is the negated level of prostate-specific antigen.",
        f"{NO_PAPER}; after {AGLIETTI}",
        optimal_do={"Aspirin": 1, "Statin": "C", "Dose": 20.0},
    )


def fermenter(noisy: bool = True) -> Problem:
    """A fermenter: feed, temperature, stirring, pH and one of four media make cells grow and a product accumulate.

    A medium has its own growth, best temperature and acid, so that it enters two nodes. The best settings therefore
    depend on the medium.

    Args:
        noisy: whether every node has noise.
    """
    require_truth_value("noisy", noisy)
    growth, heat, acid = (by_category("medium", list(column)) for column in zip(*MEDIA.values(), strict=True))
    equations = {
        "growth": f"{growth} * feed / (1.5 + feed) * exp(-((heat - {heat}) / 4.0)**2) + u",
        "biomass": "4.0 * growth * (1.0 - exp(-stir / 3.0)) + u",
        "acid": f"{acid} * (0.1 * biomass + 0.6 * growth**2) + 0.004 * stir**2 + u",
        "titre": "biomass * exp(-((ph - 6.8) / 0.6)**2 - 0.8 * acid) - 0.03 * feed + u",
    }
    noise = {"growth": 0.02, "biomass": 0.05, "acid": 0.02, "titre": 0.04}
    names = ["feed", "heat", "stir", "ph", "medium"]
    return Problem(
        "Fermenter",
        StructuralCausalModel(read_equations(equations, noise if noisy else 0.0, actions=names), reward="titre"),
        "A batch of cells: feed in g/h on a logarithmic scale, heat in °C, stirring in hundreds of rpm, pH and medium.",
        NO_PAPER,
        action_domains=[
            Range(0.1, 10, scale="log"),
            Range(28, 40, step=0.5),
            Integer(1, 9),
            Range(5.5, 7.5, step=0.1),
            Categorical(MEDIA),
        ],
        action_names=names,
        noise_known=False,
    )
