"""A fermenter: four parameters of a chain, a limit on the acid, a price for the feed.

First by hand, as in a laboratory: import past batches from a CSV file, ask for a batch, and record its outcome.
Then by a robot: a simulator replaces the plant and runs a whole campaign. Run with --quick for a short campaign.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import yaml
from terminal import last_asked, pairs, shell

from cbo_gym.study import create_study, load_study

HERE = Path(__file__).parent
STUDY = yaml.safe_load((HERE / "fermenter.yaml").read_text(encoding="utf-8"))
# Standard deviations of growth, biomass, acid and titre.
NOISE = (0.02, 0.05, 0.02, 0.04)


class Plant:
    """Simulator of the plant, which the agent does not know."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def run(self, feed, heat, stir, ph):
        """Run one batch and return the measured values."""
        growth = feed / (1.5 + feed) * np.exp(-(((heat - 34) / 4) ** 2)) + self.rng.normal(0, NOISE[0])
        biomass = 4 * growth * (1 - np.exp(-stir / 300)) + self.rng.normal(0, NOISE[1])
        acid = 0.1 * biomass + 0.6 * growth**2 + self.rng.normal(0, NOISE[2])
        titre = biomass * np.exp(-(((ph - 6.8) / 0.6) ** 2) - 0.8 * acid) + self.rng.normal(0, NOISE[3])
        return {"growth": float(growth), "biomass": float(biomass), "acid": float(acid), "titre": float(titre)}


def by_hand(folder):
    """Plan two batches in Python, and two from a shell, in one file."""
    database = folder / "fermenter.db"
    plant = Plant(seed=100)
    print("By hand, in Python")
    study = create_study(storage=database, **STUDY)
    print(f"{study.add_data(pl.read_csv(HERE / 'fermenter.csv'))} past batches")
    trial = study.ask()
    print(f"batch {trial.number}: {pairs(trial.do)}  ({trial.why})")
    # The probe drifted.
    done = trial.do | {"ph": trial.do["ph"] - 0.05}
    study.tell(trial, plant.run(**done), did={"ph": done["ph"]})
    study.fail(study.ask(), "the pump broke")

    print("\nThe same from a shell")
    shell(f"cbo-gym study ask {database}")
    number, do = last_asked(study)
    shell(f"cbo-gym study tell {database} {number} {pairs(plant.run(**do))}")
    shell(f"cbo-gym study recommend {database}")
    shell(f"cbo-gym study what-if {database} feed=2 heat=34 stir=800 ph=6.8")


def by_a_robot(folder, trials):
    """Run a campaign without a person."""
    database = folder / "robot.db"
    plant = Plant(seed=101)
    study = create_study(storage=database, **STUDY | {"horizon": trials})
    study.add_data(pl.read_csv(HERE / "fermenter.csv"))
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, plant.run(**trial.do))
    # Another process would get the same recommendation.
    best = load_study(storage=database).recommendation()
    expected = study.what_if(best)
    print(f"\nBy a robot, {trials} batches")
    print(f"to deploy: {pairs(best)}")
    print(f"expected: titre {expected['titre']:.2f} g/l, acid {expected['acid']:.2f} g/l, at most 0.4 allowed")
    print(f"report: {study.report(folder / 'fermenter.html').name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a campaign of one batch instead of 30")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        by_hand(Path(folder))
        by_a_robot(Path(folder), 1 if arguments.quick else 30)


if __name__ == "__main__":
    main()
