"""The same loop in three libraries on the fermenter: a study of this package, Optuna, and Ax if it is installed.

Each gets the six past batches, the bounds and the limit on the acid, then suggests batches and receives their outcomes.
Its score is the true expected titre and acid of the batch that it would deploy. "wrong" is the study without one arrow
of the diagram. Run with --seeds 100 109 to repeat it on ten seeds, with --quick for three trials.
"""

import argparse
import importlib.util
import inspect
import logging
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from fermenter import HERE, STUDY, Plant
from scipy.stats import t as student

BOUNDS = {name: parameter["bounds"] for name, parameter in STUDY["parameters"].items()}
PAST = pl.read_csv(HERE / "fermenter.csv").to_dicts()
# The study's limit on the acid.
LIMIT = 0.4  # g/l
# Repeats of a batch that estimate its expected titre and acid.
REPEATS = 20_000


def with_a_study(plant, trials, seed, folder, description=STUDY):
    """Plan by MCBO, which knows the diagram and every measured variable."""
    from cbo_gym.study import create_study

    study = create_study(storage=folder / f"{seed}.db", **description | {"horizon": trials, "seed": seed})
    study.add_data(PAST)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, plant.run(**trial.do))
    return study.recommendation()


def with_optuna(plant, trials, seed, folder, sampler="TPESampler"):
    """Plan by a sampler of Optuna, which knows the titre and by how much the acid missed its limit."""
    import optuna

    spaces = {name: optuna.distributions.FloatDistribution(*bounds) for name, bounds in BOUNDS.items()}
    optuna_sampler = getattr(optuna.samplers, sampler)(seed=seed)
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder}/{seed}.db")
    study = optuna.create_study(direction="maximize", sampler=optuna_sampler, storage=storage)
    for row in PAST:
        past = {name: float(row[f"do({name})"]) for name in BOUNDS}
        missed = {"acid": row["acid"] - LIMIT}
        study.add_trial(
            optuna.trial.create_trial(params=past, distributions=spaces, value=row["titre"], constraints=missed)
        )
    for _ in range(trials):
        trial = study.ask(spaces)
        measured = plant.run(**trial.params)
        trial.set_constraint("acid", measured["acid"] - LIMIT)
        study.tell(trial, measured["titre"])
    best = study.best_trial.params
    storage.remove_session()
    # Closes the file.
    storage.engine.dispose()
    return best


def with_ax(plant, trials, seed, folder):
    """Plan by Ax's Gaussian processes, one of the titre and one of the acid, each from the parameters alone."""
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    client = Client(random_seed=seed)
    client.configure_experiment(
        [RangeParameterConfig(name=name, parameter_type="float", bounds=tuple(b)) for name, b in BOUNDS.items()]
    )
    client.configure_optimization(objective="titre", outcome_constraints=[f"acid <= {LIMIT}"])
    for row in PAST:
        number = client.attach_trial({name: float(row[f"do({name})"]) for name in BOUNDS})
        client.complete_trial(number, {"titre": row["titre"], "acid": row["acid"]})
    for _ in range(trials):
        for number, parameters in client.get_next_trials(max_trials=1).items():
            measured = plant.run(**parameters)
            client.complete_trial(number, {"titre": measured["titre"], "acid": measured["acid"]})
    return client.get_best_parameterization()[0]


# Without growth -> acid.
WRONG = STUDY | {"diagram": "dag { growth -> biomass -> titre; biomass -> acid -> titre }"}
LOOPS = {
    "cbo-gym": with_a_study,
    "wrong": partial(with_a_study, description=WRONG),
    "Optuna": with_optuna,
    "Optuna-GP": partial(with_optuna, sampler="GPSampler"),
    "Ax": with_ax,
}
MODULES = {"Optuna": "optuna", "Optuna-GP": "optuna", "Ax": "ax"}


def count_lines(loop):
    """Count the lines of code of a loop without its header, docstring and empty lines."""
    lines = [line.strip() for line in inspect.getsource(getattr(loop, "func", loop)).splitlines()]
    return sum(bool(line) and not line.startswith(('"""', "def ", "#")) for line in lines)


def truth(deployed):
    """Return the expected titre and acid of a batch, estimated from many batches."""
    plant = Plant(seed=0)
    runs = [plant.run(**deployed) for _ in range(REPEATS)]
    return np.mean([run["titre"] for run in runs]), np.mean([run["acid"] for run in runs])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three batches instead of 30")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FIRST", "LAST"), default=(100, 100))
    parser.add_argument("--libraries", nargs="+", choices=LOOPS, default=list(LOOPS))
    arguments = parser.parse_args()
    trials, (first, last) = 3 if arguments.quick else 30, arguments.seeds
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    for name in arguments.libraries:
        if importlib.util.find_spec(MODULES.get(name, "cbo_gym")) is None:
            print(f"{name} is not installed")
            continue
        outcomes, began = [], time.process_time()
        for seed in range(first, last + 1):
            with tempfile.TemporaryDirectory() as folder:
                outcomes.append(truth(LOOPS[name](Plant(seed), trials, seed, Path(folder))))
            titre, acid = outcomes[-1]
            print(f"{name:9} seed {seed}: deployed titre {titre:.3f}, acid {acid:.3f}", flush=True)
        titres, acids = np.array(outcomes).T
        spent = (time.process_time() - began) / len(outcomes)
        half = (
            student.ppf(0.975, len(outcomes) - 1) * titres.std(ddof=1) / len(outcomes) ** 0.5
            if len(outcomes) > 1
            else np.nan
        )
        print(
            f"{name:9} {count_lines(LOOPS[name])} lines; titre {titres.mean():.3f} +- {half:.3f}, acid above its limit "
            f"in {np.sum(acids > LIMIT)} of {len(outcomes)}, {spent:.0f} s of CPU each"
        )


if __name__ == "__main__":
    main()
