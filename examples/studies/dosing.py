"""Dosing by age and body mass: a nurse sees unrecorded facts and adapts the dose, unless the study sets it.

First by hand, with past patients from a CSV file; then by a robot that treats simulated patients. Run with --seeds 100
109 to compare agents on ten seeds, with --quick for a few patients.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import yaml
from terminal import last_asked, pairs, shell

from cbo_gym.study import create_study

HERE = Path(__file__).parent
STUDY = yaml.safe_load((HERE / "dosing.yaml").read_text(encoding="utf-8"))
# Standard deviations.
SEVERITY, TITRATION = 0.35, 0.1  # mg


class Clinic:
    """Simulator of a clinic. The dose that a patient needs is unknown to the agent; nurses notice part of it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def patient(self):
        """Return the context of the next patient, known before the treatment."""
        return {"age": float(self.rng.uniform(30, 80)), "mass": float(self.rng.uniform(50, 110))}

    def treat(self, patient, start=None, dose=None):
        """Return the record of a treatment; unset doses are the usual start and what the nurse makes of it."""
        severity = self.rng.normal(0, SEVERITY)
        start = self.rng.normal(1.5, 0.2) if start is None else start
        dose = start + severity + self.rng.normal(0, TITRATION) if dose is None else dose
        need = 0.02 * patient["mass"] * (1.4 - patient["age"] / 100) + severity
        health = 1 - (dose - need) ** 2 - 0.2 * severity + self.rng.normal(0, 0.05)
        return patient | {"start": float(start), "dose": float(dose), "health": float(health)}


def expected_health(patient, do):
    """Return the expected health over all unobserved variables."""
    need = 0.02 * patient["mass"] * (1.4 - patient["age"] / 100)
    if "dose" in do:
        return 1 - (do["dose"] - need) ** 2 - SEVERITY**2
    start, spread = (do["start"], 0.0) if "start" in do else (1.5, 0.2)
    return 1 - (start - need) ** 2 - spread**2 - TITRATION**2


def by_hand(folder):
    """Treat a patient in Python and one from a shell."""
    database, clinic = folder / "dosing.db", Clinic(seed=100)
    past = pl.read_csv(HERE / "dosing.csv")
    print("By hand, in Python")
    study = create_study(storage=database, **STUDY)
    print(f"{study.add_data(past)} past patients")
    patient = clinic.patient()
    trial = study.ask(context=patient)
    print(f"a patient with {pairs(patient)}: set {pairs(trial.do)}")
    study.tell(trial, clinic.treat(patient, **trial.do))

    print("\nThe same from a shell")
    patient = {name: float(round(value)) for name, value in clinic.patient().items()}
    shell(f"cbo-gym study ask {database} --context age={patient['age']:.0f} --context mass={patient['mass']:.0f}")
    number, do = last_asked(study)
    shell(f"cbo-gym study tell {database} {number} {pairs(clinic.treat(patient, **do))}")


def by_a_robot(folder, agent, patients, seed):
    """Treat patients; return the study, the expected health of each patient and the scopes."""
    clinic = Clinic(seed)
    settings = STUDY | {"agent": agent, "horizon": patients, "seed": seed}
    study = create_study(storage=folder / f"{agent}-{seed}.db", **settings)
    study.add_data(pl.read_csv(HERE / "dosing.csv"))
    earned, scopes = [], []
    for _ in range(patients):
        patient = clinic.patient()
        trial = study.ask(context=patient)
        study.tell(trial, clinic.treat(patient, **trial.do))
        earned.append(expected_health(patient, trial.do))
        scopes.append(tuple(trial.do))
    return study, np.array(earned), scopes


def compare(folder, seeds, patients):
    """Compare agents by the expected health of the last quarter of the patients."""
    means = {
        agent: np.array([by_a_robot(folder, agent, patients, seed)[1][-patients // 4 :].mean() for seed in seeds])
        for agent in ("CoCaBO", "CoBO")
    }
    clinic = Clinic(seed=99)
    alone = np.mean([expected_health(clinic.patient(), {}) for _ in range(10_000)])
    print(f"\nexpected health, the last quarter of {patients} patients, {len(seeds)} seeds")
    print(f"  left to habit and nurse                    {alone:.3f}")
    for agent, rule in (("CoBO", "everything set by everything"), ("CoCaBO", "what the diagram says is enough")):
        spread = means[agent].std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else float("nan")
        print(f"  {rule + ', ' + agent:42} {means[agent].mean():.3f} +- {2.26 * spread:.3f}")
    print(f"  best possible, dose set                    {1 - SEVERITY**2:.3f}")
    print(f"  best possible, starting dose set           {1 - TITRATION**2:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="twelve patients instead of 100")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FIRST", "LAST"), default=(100, 100))
    arguments = parser.parse_args()
    first, last = arguments.seeds
    with tempfile.TemporaryDirectory() as folder:
        by_hand(Path(folder))
        compare(Path(folder), range(first, last + 1), 12 if arguments.quick else 100)


if __name__ == "__main__":
    main()
