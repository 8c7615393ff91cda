"""Choosing an agent's parameter for each environment by how it does on all the others (leave one task out)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from cbo_gym.arguments import require_word
from cbo_gym.errors import ArgumentError, shown
from cbo_gym.evaluation.metrics.regret import TIE_DECIMALS, normalised_score
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.files import require_file, write_text
from cbo_gym.labels import bare_name
from cbo_gym.seed_ranges import INSTANCE_SEED, PUBLICATION, TUNING, TUNING_INSTANCES
from cbo_gym.specs import Spec
from cbo_gym.yaml_files import read_yaml

#: metric -> what it is; all are normalised scores after the last round, so environments can be averaged
METRICS = {
    "average_score": "score of the average expected reward",
    "best": "score of the best expected reward so far",
}
SHOWN_PROBLEMS = 5

Cell = tuple[str, float, int]  # environment, value of the parameter, seed


@dataclass(frozen=True)
class Choice:
    """The chosen values of a parameter, and those they were chosen from.

    Attributes:
        agent: the agent without the parameter, as a label: ``"MCBO"``.
        parameter: name of the keyword argument that was chosen.
        metric: one of :data:`METRICS`.
        chosen: environment -> value, as it was written in the agent's label.
        candidates: the values compared, ascending.
        seeds, horizons, versions: of the runs compared, each distinct one once.
        table: one row per environment: ``env``, ``chosen``, and ``<parameter>=<value>`` for each candidate with
            its mean score on all other environments.
    """

    agent: str
    parameter: str
    metric: str
    chosen: dict[str, float]
    candidates: tuple[float, ...]
    seeds: tuple[int, ...]
    horizons: tuple[int, ...]
    versions: tuple[str, ...]
    table: pl.DataFrame


def choose_parameter(runs: Iterable[Run], agent: str, parameter: str, metric: str = "average_score") -> Choice:
    """For each environment, the parameter value with the best mean score on all other environments.

    The procedure of Sussex, Makarova and Krause (2023), A.4, there for beta in {0.05, 0.5, 5}. Scores are normalised
    (0 for random play, 1 for the optimum), averaged over seeds within an environment and then over environments, so
    that each environment counts the same. Scores equal to nine decimals are a tie; the smaller value wins it.

    Args:
        runs: any runs; those of other agents are left out, as are skipped ones and those whose label does not state
            the parameter.
        agent: name of the agent, with the parameters that all candidates share: ``"MCBO"``.
        parameter: name of the keyword argument that varies: ``"beta"``.
        metric: one of :data:`METRICS`.

    Raises:
        ArgumentError: if the metric is unknown; if there are fewer than two values or two environments; if a value is
            no number; if a seed or an instance is kept for published verdicts, which nothing may be chosen by; if some
            value lacks a finished run on some environment with some seed; or if there are several runs of one value,
            environment and seed.
    """
    require_word("metric", metric, METRICS)
    shared = Spec.parse(agent)
    stated = [(run, _stated_value(run, shared, parameter)) for run in runs if run.status != "skipped"]
    candidates = [(run, value) for run, value in stated if value is not None]
    if strange := [value for _, value in candidates if not isinstance(value, int | float)]:  # perhaps not hashable
        raise ArgumentError(f"the values of {parameter} must be numbers; found {', '.join(map(shown, strange))}")
    envs, seeds = sorted({run.env for run, _ in candidates}), sorted({run.seed for run, _ in candidates})
    values: list[float] = sorted({value for _, value in candidates})
    for count, what in ((len(values), f"values of {parameter}"), (len(envs), "environments")):
        if count < 2:
            raise ArgumentError(
                f"the choice needs runs of {shared} with at least two {what}; found {count}. "
                f"Sweep it with {parameter}=VALUE among its parameters, once for each value"
            )
    _require_free(envs, seeds)
    cells: dict[Cell, Run] = {}
    for run, value in candidates:
        if run.status != "finished" or run.unverified:
            continue
        other = cells.setdefault((run.env, value, run.seed), run)
        if other is not run:
            both = (f"{one.agent} with {one.horizon} rounds by version {one.version}" for one in (other, run))
            raise ArgumentError(
                f"there are two runs of {parameter}={value!r} on {run.env} with seed {run.seed}: "
                f"{', and '.join(both)}; give those of one sweep"
            )
    _require_complete(cells, envs, values, seeds, parameter)
    # environments x values, the seeds averaged out
    scores = np.array(
        [
            [np.mean([final_score(cells[env, value, seed], metric) for seed in seeds]) for value in values]
            for env in envs
        ]
    )
    elsewhere = (scores.sum(axis=0) - scores) / (len(envs) - 1)
    best = elsewhere.round(TIE_DECIMALS).argmax(axis=1)  # the first of equals, and values ascend
    chosen = {env: values[place] for env, place in zip(envs, best, strict=True)}
    columns = {f"{parameter}={value!r}": elsewhere[:, place] for place, value in enumerate(values)}
    return Choice(
        agent=str(shared),
        parameter=parameter,
        metric=metric,
        chosen=chosen,
        candidates=tuple(values),
        seeds=tuple(seeds),
        horizons=tuple(sorted({run.horizon for run in cells.values()})),
        versions=tuple(sorted({run.version for run in cells.values()})),
        table=pl.DataFrame({"env": envs, "chosen": [float(value) for value in chosen.values()], **columns}),
    )


def final_score(run: Run, metric: str) -> float:
    """The metric of one finished run after its last round."""
    rewards = {"average_score": run.average_counted, "best": run.optimum - run.curve("best_so_far_regret")[-1]}
    return float(normalised_score(run.optimum, run.random_value, rewards[metric]))


def _stated_value(run: Run, shared: Spec, parameter: str) -> Any:
    """The parameter's value in the label of a run of the agent; None if it has none, or is of another agent."""
    if bare_name(run.agent) != shared.name:
        return None
    keywords = Spec.told(run.agent).keywords
    value = keywords.pop(parameter, None)
    return value if keywords == shared.keywords else None


def _require_free(envs: Iterable[str], seeds: Iterable[int]) -> None:
    """What is chosen by seeds that judge it is judged too well."""
    kept = [f"seed {seed}" for seed in seeds if seed in PUBLICATION]
    kept += [env for env in envs if Spec.told(env).keywords.get(INSTANCE_SEED) in PUBLICATION]
    if kept:
        raise ArgumentError(
            f"seeds and instances {PUBLICATION.start} to {PUBLICATION.stop - 1} are for published verdicts alone, and "
            f"choose nothing; given {', '.join(kept[:SHOWN_PROBLEMS])}. Choose by others, as seeds {TUNING.start} to "
            f"{TUNING.stop - 1} and instances {TUNING_INSTANCES.start} to {TUNING_INSTANCES.stop - 1}"
        )


def _require_complete(
    cells: Mapping[Cell, Run], envs: list[str], values: list[float], seeds: list[int], parameter: str
) -> None:
    """Means over different seeds or environments would not be comparable, so nothing may be missing."""
    missing: dict[str, list[str]] = {}
    for env, value, seed in product(envs, values, seeds):
        if (env, value, seed) not in cells:
            missing.setdefault(f"{parameter}={value!r} on {env}", []).append(str(seed))
    if missing:
        named = [f"{pair}, seeds {', '.join(lacking)}" for pair, lacking in missing.items()]
        more = f"; and {len(named) - SHOWN_PROBLEMS} more" if len(named) > SHOWN_PROBLEMS else ""
        raise ArgumentError(f"finished runs are missing: {'; '.join(named[:SHOWN_PROBLEMS])}{more}")


def write_choice(path: Path, choice: Choice, command: str) -> None:
    """Record a choice in a YAML file, in one step; choices of other agents, parameters and metrics are kept.

    The file maps agent -> parameter -> metric -> what :func:`read_chosen` reads and where it comes from.

    Raises:
        ArgumentError: if the path is no name of a YAML file, or of one that is no such file.
    """
    stored = _load(require_file(path, ".yaml", ".yml"))
    lists = {name: list(getattr(choice, name)) for name in ("candidates", "seeds", "horizons", "versions")}
    record = {"chosen": choice.chosen, **lists, "command": command}
    stored.setdefault(choice.agent, {}).setdefault(choice.parameter, {})[choice.metric] = record
    write_text(path, yaml.safe_dump(stored, sort_keys=False, default_flow_style=None, width=100))


def read_chosen(path: Path, agent: str, parameter: str, metric: str) -> dict[str, float]:
    """Environment -> chosen value, as :func:`write_choice` recorded it; empty if there is no record or no file.

    Raises:
        ArgumentError: if the file is not one that :func:`write_choice` writes.
    """
    record = _load(path).get(agent, {}).get(parameter, {}).get(metric, {"chosen": {}})
    try:
        return dict(record["chosen"])
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(f"{path}: {agent}, {parameter}, {metric} must hold a mapping 'chosen'") from error


def _load(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    if not path.exists():
        return {}
    try:
        stored = read_yaml(path) or {}
    except ArgumentError as error:
        raise ArgumentError(f"cannot read {path}: {error}") from error
    parameters = stored.values() if isinstance(stored, dict) else [None]
    if not all(isinstance(p, dict) and all(isinstance(m, dict) for m in p.values()) for p in parameters):
        raise ArgumentError(
            f"{path} is not a file of chosen parameters: it must map agent, parameter and metric to a choice"
        )
    return stored
