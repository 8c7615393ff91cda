"""What an earlier campaign is worth in which one mechanism differed: trials until 90 % of the best titre."""

import numpy as np
import pytest
from scipy.stats import bootstrap, qmc

from cbo_gym.study import create_study

SEEDS = range(100, 110)
TRIALS = 20
PAST = 30
FIELDS = {
    "mode": "soft",
    "diagram": "dag { growth -> biomass -> titre; growth -> acid -> titre; biomass -> acid }",
    "reward": "titre",
    "parameters": {
        "feed": {"node": "growth", "bounds": (0, 6)},
        "heat": {"node": "growth", "bounds": (28, 40)},
        "stir": {"node": "biomass", "bounds": (100, 900)},
        "ph": {"node": "titre", "bounds": (5.5, 7.5)},
    },
    "agent": "MCBO",
    "horizon": TRIALS,
}
BOUNDS = {name: parameter["bounds"] for name, parameter in FIELDS["parameters"].items()}


def ferment(noise, acidity, feed, heat, stir, ph):
    """The values of a batch in a vessel whose broth turns acid to this degree."""
    growth = feed / (1.5 + feed) * np.exp(-(((heat - 34) / 4) ** 2)) + noise[0]
    biomass = 4 * growth * (1 - np.exp(-stir / 300)) + noise[1]
    acid = 0.1 * biomass + acidity * growth**2 + noise[2]
    titre = biomass * np.exp(-(((ph - 6.8) / 0.6) ** 2) - 0.8 * acid) + noise[3]
    return {"growth": growth, "biomass": biomass, "acid": acid, "titre": titre}


PILOT, PLANT = 0.2, 3.0
NOISE = np.array([0.02, 0.05, 0.02, 0.04])


def in_bounds(unit):
    return {name: float(low + (high - low) * x) for (name, (low, high)), x in zip(BOUNDS.items(), unit, strict=True)}


def best_titre(acidity):
    points = qmc.Sobol(4, seed=100).random(2**14)
    return max(ferment(np.zeros(4), acidity, **in_bounds(point))["titre"] for point in points)


def trials_until_good(path, seed, prior):
    """The number of the first trial whose expected titre is 90 % of the best; one more than the last if none is."""
    rng = np.random.default_rng(seed)
    study = create_study("plant", storage=path, seed=seed, **FIELDS)
    if prior is not None:
        done = [in_bounds(rng.random(4)) for _ in range(PAST)]
        past = [ferment(rng.normal(0, NOISE), PILOT, **do) for do in done]
        study.add_data(past, do=done, campaign="pilot", differs=prior)
    rng = np.random.default_rng(seed)
    goal = 0.9 * best_titre(PLANT)
    for trial in (study.ask() for _ in range(TRIALS)):
        if ferment(np.zeros(4), PLANT, **trial.do)["titre"] >= goal:
            return trial.number
        study.tell(trial, ferment(rng.normal(0, NOISE), PLANT, **trial.do))
    return TRIALS + 1


def interval(values):
    low, high = bootstrap([values], np.mean, rng=np.random.default_rng(100)).confidence_interval
    return f"{np.mean(values):.1f} ({low:.1f} to {high:.1f})"


@pytest.mark.slow
def test_an_earlier_campaign_saves_trials(tmp_path):
    counts = {
        name: [trials_until_good(tmp_path / f"{name}{seed}.db", seed, prior) for seed in SEEDS]
        for name, prior in (("without", None), ("acid differs", ["acid"]), ("all the same", []))
    }
    saved = np.subtract(counts["without"], counts["acid differs"])
    print(
        "\n".join(f"{name}: {interval(values)} {values}" for name, values in counts.items()), "saved", interval(saved)
    )
    assert np.mean(saved) > 2.0
    assert np.mean(counts["acid differs"]) < np.mean(counts["all the same"])
