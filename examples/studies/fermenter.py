"""A fermenter: feed and temperature of a chain of tanks, a constraint on the biomass, a price for the feed.

By hand it is the commands at the end, with past batches in a CSV file. Here a robot plays it: a simulator stands in the
plant's place, and the study is told what the plant would have said. Run with --quick for a few trials.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from cbo_gym.study import create_study

STUDY = {
    "mode": "soft",
    "diagram": "dag { growth -> biomass -> titre; growth -> acid -> titre }",
    "reward": "titre",
    "parameters": {
        "feed": {"node": "growth", "bounds": [0.0, 5.0]},
        "heat": {"node": "growth", "bounds": [28.0, 40.0]},
        "stir": {"node": "acid", "bounds": [100.0, 900.0]},
    },
    "constraints": ["biomass >= 1.5"],
    "costs": {"base": 1.0, "per_unit": {"feed": 0.2}},
    "units": {"feed": "g/h", "heat": "degrees C", "stir": "1/min", "titre": "g/l"},
    "agent": "MCBO",
}


class Plant:
    """What nobody knows."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def run(self, feed, heat, stir):
        noise = self.rng.normal(0.0, 0.03, 4)
        growth = np.tanh(feed / 2) * np.exp(-(((heat - 34) / 4) ** 2)) + noise[0]
        biomass = 3.0 * growth + noise[1]
        acid = 0.6 * growth + 0.4 * np.exp(-stir / 300) + noise[2]
        titre = biomass * np.exp(-2.0 * acid) + noise[3]
        names = ("growth", "biomass", "acid", "titre")
        return dict(zip(names, map(float, (growth, biomass, acid, titre)), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="four trials instead of 25")
    trials = 4 if parser.parse_args().quick else 25
    plant = Plant(seed=100)
    with tempfile.TemporaryDirectory() as folder:
        study = create_study("fermenter", storage=Path(folder, "fermenter.db"), horizon=trials, **STUDY)
        past = [{"feed": feed, "heat": heat, "stir": 400.0} for feed in (1.0, 3.0) for heat in (31.0, 36.0)]
        study.add_data([plant.run(**done) for done in past], do=past)
        for _ in range(trials):
            trial = study.ask()
            study.tell(trial, plant.run(**trial.do))
        frame = study.to_frame()
        print(frame.select("number", "do(feed)", "do(heat)", "do(stir)", "biomass", "titre").tail(4))
        best = study.recommendation()
        print("to deploy:", {name: round(value, 2) for name, value in best.items()})
        print("expected:", {name: round(value, 2) for name, value in study.what_if(best).items()})


if __name__ == "__main__":
    main()
