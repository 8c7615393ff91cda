"""Dosing by age and body mass, where something unseen moves the dose that patients choose and how they fare.

Who only looks at past patients sees that high doses go with bad outcomes; the study intervenes instead, and lets the
dose follow what is seen of each patient. Run with --quick for a few patients.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from cbo_gym.study import create_study

STUDY = {
    "mode": "contextual",
    "diagram": "dag { age -> dose; mass -> dose; dose -> health; age -> health; mass -> health; dose <-> health }",
    "reward": "health",
    "settable": {"dose": [0.0, 1.0]},
    "contexts": ["age", "mass"],
    "scopes": [{"dose": ["age", "mass"]}, {"dose": []}, {}],
    "units": {"age": "years", "mass": "kg/m^2", "dose": "mg"},
    "agent": "CoCaBO",
}


class Clinic:
    """What nobody knows: severe cases take more by themselves, and fare worse whatever they take."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def patient(self):
        return {"age": float(self.rng.uniform(30, 80)), "mass": float(self.rng.uniform(18, 35))}

    def treat(self, patient, dose=None):
        severity, noise = self.rng.normal(0.0, 1.0), self.rng.normal(0.0, 0.05)
        own = np.clip(0.5 + 0.2 * severity, 0.0, 1.0) if dose is None else dose
        best = (patient["age"] - 30) / 100 + (patient["mass"] - 18) / 60
        return patient | {"dose": float(own), "health": float(1 - 4 * (own - best) ** 2 - 0.1 * severity + noise)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="six patients instead of 60")
    patients = 6 if parser.parse_args().quick else 60
    clinic = Clinic(seed=100)
    with tempfile.TemporaryDirectory() as folder:
        study = create_study("dosing", storage=Path(folder, "dosing.db"), horizon=patients, **STUDY)
        for _ in range(patients):
            patient = clinic.patient()
            trial = study.ask(context=patient)
            study.tell(trial, clinic.treat(patient, trial.do.get("dose")))
        frame = study.to_frame()
        print(frame.select("number", "age", "mass", "do(dose)", "health").tail(5))
        later = frame["health"].to_numpy()[patients // 2 :].mean()
        alone = np.mean([clinic.treat(clinic.patient())["health"] for _ in range(1000)])
        print(f"health, the later half of the patients: {later:.2f}; left to themselves: {alone:.2f}")


if __name__ == "__main__":
    main()
