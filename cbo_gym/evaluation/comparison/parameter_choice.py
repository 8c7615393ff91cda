"""Choose a parameter of an agent for each environment by its scores on all other environments (leave one task out)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from cbo_gym._util.arguments import require_word
from cbo_gym._util.files import require_file, write_text
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.labels import Spec, bare_name
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.evaluation.metrics.regret import TIE_DECIMALS, normalised_score
from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.seed_ranges import INSTANCE_SEED, PUBLICATION, TUNING, TUNING_INSTANCES

# Name of a metric -> its meaning. All metrics are normalised scores after the last round, so environments can be
# averaged.
METRICS = {"average_score": "score of the average expected reward", "best": "score of the best expected reward so far"}
# Largest number of problems in an error message.
SHOWN_PROBLEMS = 5
# Environment, value of the parameter, seed.
RunKey = tuple[str, float, int]


@dataclass(frozen=True)
class Choice:
    """Chosen values of a parameter, and the runs on which the choice is based.

    Attributes:
        agent: label of the agent without the parameter: ``"MCBO"``.
        parameter: name of the keyword argument that was chosen.
        metric: one of :data:`METRICS`.
        chosen: value for each environment, as it is in the agent's label.
        candidates: the compared values, ascending.
        seeds, horizons, versions: distinct values in the compared runs.
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
    """Choose for each environment the parameter value with the best mean score on all other environments.

    The procedure is that of Sussex, Makarova and Krause (2023), A.4, where beta is chosen from {0.05, 0.5, 5}. Scores
    are normalised (0 for random play, 1 for the optimum), and averaged over seeds and then over environments, so that
    environments have equal weights. Scores that agree to nine decimals are a tie, which the smaller value wins.

    Args:
        runs: runs; skipped runs, and runs of other agents or without the parameter in their label, are left out.
        agent: name of the agent, with the parameters that all candidates share: ``"MCBO"``.
        parameter: name of the keyword argument that varies: ``"beta"``.
        metric: one of :data:`METRICS`.

    Raises:
        ArgumentError: if the metric is unknown; if there are fewer than two values or two environments; if a value is
            not a number; if a seed or an instance is reserved for published results; if a combination of value,
            environment and seed has no finished run, or several runs; or if runs of an environment differ in their
            number of rounds.
    """
    require_word("metric", metric, METRICS)
    shared = Spec.parse(agent)
    stated = [(run, _stated_value(run, shared, parameter)) for run in runs if run.status != "skipped"]
    candidates = [(run, value) for run, value in stated if value is not None]
    # This comes before values are put into a set, because they may not be hashable.
    if invalid := [value for _, value in candidates if not isinstance(value, int | float)]:
        raise ArgumentError(f"the values of {parameter} must be numbers; found {', '.join(map(short_repr, invalid))}")
    envs, seeds = sorted({run.env for run, _ in candidates}), sorted({run.seed for run, _ in candidates})
    values: list[float] = sorted({value for _, value in candidates})
    for count, noun in ((len(values), f"values of {parameter}"), (len(envs), "environments")):
        if count < 2:
            raise ArgumentError(
                f"the choice needs runs of {shared} with at least two {noun}; found {count}. "
                f"Sweep it with {parameter}=VALUE among its parameters, once for each value"
            )
    _require_unreserved(envs, seeds)
    finished: dict[RunKey, Run] = {}
    for run, value in candidates:
        if run.status != "finished" or run.unverified:
            continue
        earlier = finished.setdefault((run.env, value, run.seed), run)
        if earlier is not run:
            both = (f"{twin.agent} with {twin.horizon} rounds by version {twin.version}" for twin in (earlier, run))
            raise ArgumentError(
                f"there are two runs of {parameter}={value!r} on {run.env} with seed {run.seed}: "
                f"{', and '.join(both)}; give those of one sweep"
            )
    _require_complete(finished, envs, values, seeds, parameter)
    labels = sorted({env_label(run) for run in finished.values()})
    if len(labels) > len(envs):
        raise ArgumentError(
            f"all runs of an environment must have the same number of rounds; given {', '.join(labels)}; give those of "
            "one sweep"
        )
    all_scores = [final_score(finished[key], metric) for key in product(envs, values, seeds)]
    # Means over seeds, shape (environments, values).
    scores = np.array(all_scores).reshape(len(envs), len(values), len(seeds)).mean(axis=-1)
    other_means = (scores.sum(axis=0) - scores) / (len(envs) - 1)
    # argmax returns the smallest of equally good values.
    best = other_means.round(TIE_DECIMALS).argmax(axis=1)
    chosen = {env: values[index] for env, index in zip(envs, best, strict=True)}
    columns = {f"{parameter}={value!r}": other_means[:, index] for index, value in enumerate(values)}
    return Choice(
        agent=str(shared),
        parameter=parameter,
        metric=metric,
        chosen=chosen,
        candidates=tuple(values),
        seeds=tuple(seeds),
        horizons=tuple(sorted({run.horizon for run in finished.values()})),
        versions=tuple(sorted({run.version for run in finished.values()})),
        table=pl.DataFrame({"env": envs, "chosen": [float(value) for value in chosen.values()], **columns}),
    )


def final_score(run: Run, metric: str) -> float:
    """Return the metric of a finished run after its last round."""
    rewards = {"average_score": run.average_penalized_reward, "best": run.optimum - run.curve("best_so_far_regret")[-1]}
    return float(normalised_score(run.optimum, run.random_value, rewards[metric]))


def _stated_value(run: Run, shared: Spec, parameter: str) -> Any:
    """Return the parameter's value in the label of a run; None if the label lacks it or is of another agent."""
    if bare_name(run.agent) != shared.name:
        return None
    keywords = Spec.from_label(run.agent).keywords
    value = keywords.pop(parameter, None)
    return value if keywords == shared.keywords else None


def _require_unreserved(envs: Iterable[str], seeds: Iterable[int]) -> None:
    """Check that no seed or instance is reserved for published results, which tuning on them would bias."""
    reserved = [f"seed {seed}" for seed in seeds if seed in PUBLICATION]
    reserved += [env for env in envs if Spec.from_label(env).keywords.get(INSTANCE_SEED) in PUBLICATION]
    if reserved:
        raise ArgumentError(
            f"seeds and instances {PUBLICATION.start} to {PUBLICATION.stop - 1} are for published results alone, and "
            f"must not be used to choose; given {', '.join(reserved[:SHOWN_PROBLEMS])}. Use others, such as seeds "
            f"{TUNING.start} to {TUNING.stop - 1} and instances {TUNING_INSTANCES.start} to {TUNING_INSTANCES.stop - 1}"
        )


def _require_complete(
    finished: Mapping[RunKey, Run], envs: list[str], values: list[float], seeds: list[int], parameter: str
) -> None:
    """Check that no run is missing, because means over different seeds or environments are not comparable."""
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for env, value, seed in product(envs, values, seeds):
        if (env, value, seed) not in finished:
            missing[f"{parameter}={value!r} on {env}"].append(str(seed))
    if missing:
        messages = [f"{pair}, seeds {', '.join(missing_seeds)}" for pair, missing_seeds in missing.items()]
        remainder = f"; and {len(messages) - SHOWN_PROBLEMS} more" if len(messages) > SHOWN_PROBLEMS else ""
        raise ArgumentError(f"finished runs are missing: {'; '.join(messages[:SHOWN_PROBLEMS])}{remainder}")


def write_choice(path: Path, choice: Choice, command: str) -> None:
    """Record a choice in a YAML file, in place of an earlier choice of the same agent, parameter and metric.

    The file maps agent, parameter and metric to the choice and its origin, see :func:`read_chosen`.
    """
    stored = _load(require_file(path, ".yaml", ".yml"))
    lists = {name: list(getattr(choice, name)) for name in ("candidates", "seeds", "horizons", "versions")}
    record = {"chosen": choice.chosen, **lists, "command": command}
    stored.setdefault(choice.agent, {}).setdefault(choice.parameter, {})[choice.metric] = record
    write_text(path, yaml.safe_dump(stored, sort_keys=False, default_flow_style=None, width=100))


def read_chosen(path: Path, agent: str, parameter: str, metric: str) -> dict[str, float]:
    """Read the chosen value of each environment that :func:`write_choice` recorded; empty if there is none."""
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
    by_parameter = stored.values() if isinstance(stored, dict) else [None]
    is_valid = all(isinstance(mapping, dict) for mapping in by_parameter)
    if not is_valid or not all(isinstance(inner, dict) for mapping in stored.values() for inner in mapping.values()):
        raise ArgumentError(
            f"{path} is not a file of chosen parameters: it must map agent, parameter and metric to a choice"
        )
    return stored
