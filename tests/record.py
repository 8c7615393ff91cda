"""The record of behaviour: hashes of what environments, oracles and agents do, against which a rebuilding is checked.

``python -m tests.record`` compares with ``tests/record.json``; ``--write`` makes that file anew, which is right only
where a change of behaviour is meant. ``--part environments`` (or ``oracles``, ``agents``) takes one part.

Bits differ between processors and library versions: hashes are compared where both are as recorded. Elsewhere the
totals of the environments' rewards are compared, within rounding; what agents and searches make of a last digit is not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import platform
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import cbo_gym
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.oracle import oracle_of
from cbo_gym.registry import entries
from cbo_gym.task import Task

FILE = Path(__file__).with_suffix(".json")
ROUNDS, SEEDS = 30, (0, 1)
AGENT_ROUNDS = 12
LIBRARIES = ("numpy", "scipy", "torch", "gpytorch", "botorch", "scikit-learn", "networkx", "gymnasium")
PLAYED_BY_AGENTS = (
    "CBO/Dropwave-Noisy-v0",
    "CBO/Dropwave-v0(max_interventions=1)",
    "CBO/ToyGraph-v0",
    "CBO/CoCaFig1-v0",
    "CBO/GPBandit1-v0",
    "CBO/SSEMPeriodic-v0",
    "CBO/IVBandit-v0",
    "CBO/ParallelBandit-v0",
    "CBO/Dropwave-Penny-v0",
    "CBO/DCBOStat-v0",
    "CBO/LinearSEMHierarchical5-v0",
    "CBO/PSAGraph-Cost-v0",
    "CBO/Alpine2-Cost-v0",
)
OF_TASKS = (
    "env_id", "mode", "nodes", "reward", "horizon", "action_nodes", "action_domains", "null_action",
    "max_interventions", "manipulable", "targets", "contexts", "scopes", "kernel", "super_arm_size",
    "arms", "adversary_nodes", "adversary_domains", "adversary_names", "levels",
)  # fmt: skip
OF_MODES = {
    "aggregated": ("arity", "representative_points", "integral"),
    "masked": ("signal_range",),
    "dynamic": ("slices", "trials", "observational"),
}


@cache
def fingerprint() -> dict[str, str]:
    """What the last digits of numbers depend on."""
    import torch
    from threadpoolctl import threadpool_info

    kernels = {f"{lib['internal_api']} {lib.get('architecture', '')}".strip() for lib in threadpool_info()}
    return {
        **{name: version(name) for name in LIBRARIES},
        "python": ".".join(platform.python_version_tuple()[:2]),
        "machine": f"{platform.machine()}, {describe_machine()}",
        "kernels": ", ".join(sorted(kernels)),
        "torch_cpu": torch.backends.cpu.get_cpu_capability(),
    }


def digest(thing: Any) -> str:
    """A hash of numbers, texts and containers of them; it does not tell int from float, nor list from tuple."""
    found = hashlib.sha256()
    _feed(found.update, thing)
    return found.hexdigest()[:16]


def _feed(update: Callable[[bytes], None], thing: Any) -> None:
    if thing is None or isinstance(thing, str):
        update(f"<{thing}>".encode())
    elif isinstance(thing, Mapping):
        update(f"{{{len(thing)}".encode())
        for key in sorted(thing):
            _feed(update, key)
            _feed(update, thing[key])
    elif isinstance(thing, frozenset):
        _feed(update, sorted(map(digest, thing)))
    elif isinstance(thing, list | tuple) and not all(isinstance(item, int | float) for item in thing):
        update(f"[{len(thing)}".encode())
        for item in thing:
            _feed(update, item)
    else:
        numbers = np.asarray(thing, dtype=np.float64)
        update(str(numbers.shape).encode())
        update(np.where(np.isnan(numbers), np.nan, numbers + 0.0).tobytes())


def play(env_id: str, seed: int) -> tuple[str, float]:
    """The hash of some rounds of random actions, and the sum of their rewards."""
    env = gym.make(env_id, render_mode="ansi")
    env.action_space.seed(seed)
    rounds: list[Any] = [env.reset(seed=seed)]
    for _ in range(ROUNDS):
        action = env.action_space.sample()
        rounds.append((action, *env.step(action), env.render()))
    return digest(rounds), math.fsum(number for one in rounds[1:] for number in np.ravel(one[2]).tolist())


def play_vector(env_id: str) -> str:
    envs = gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point")
    envs.action_space.seed(7)
    rounds: list[Any] = [envs.reset(seed=5)]
    for _ in range(5):
        rounds.append(envs.step(envs.action_space.sample()))
    return digest(rounds)


def task_parts(task: Task) -> dict[str, Any]:
    parts = {name: value for name in OF_TASKS if (value := getattr(task, name, None))}
    parts |= {name: getattr(task, name) for name in OF_MODES.get(task.mode, ())}
    parts["spaces"] = [str(task.action_space), str(task.observation_space)]
    parts["edges"] = [sorted(task.diagram.directed), sorted(map(sorted, task.diagram.bidirected))]
    parts["noise"] = str(task.noise)
    return parts


def environments() -> dict[str, Any]:
    """Rounds, tasks and initial data of every registered environment."""
    found = {}
    for entry in entries():
        env = gym.make(entry.id)
        tasks = [cbo_gym.make_task(env, seed) for seed in SEEDS]
        played = [play(entry.id, seed) for seed in SEEDS]
        found[entry.id] = {
            "rounds": digest([one for one, _ in played]),
            "vector": play_vector(entry.id),
            "task": digest([task_parts(task) for task in tasks]),
            "initial_data": digest([[tuple(past) for past in task.initial_data] for task in tasks]),
            "total_reward": math.fsum(total for _, total in played),
        }
    return found


def oracles() -> dict[str, Any]:
    """The optimum of every registered environment, searched for anew."""
    found = {}
    for entry in entries():
        best = oracle_of(gym.make(entry.id)).find_optimum()
        found[entry.id] = {
            "optimum": digest(
                [best.value, best.action, best.standard_error, best.random_value, best.random_standard_error]
            ),
            "total_reward": best.value,
        }
    return found


def runs(agent: str) -> dict[str, Any]:
    """What the evaluator says of an agent on one environment a mode, seconds apart."""
    found = {}
    for env in PLAYED_BY_AGENTS:
        try:
            run = cbo_gym.evaluate(agent, env, 0, horizon=AGENT_ROUNDS)
        except cbo_gym.UnsupportedModeError:
            continue
        table = {name: run.table[name].to_list() for name in run.table.columns if not name.endswith("seconds")}
        summary = [run.mode, run.choices, run.optimum, run.optimum_standard_error, run.random_value]
        found[f"{agent} on {env}"] = {
            "table": digest([table, summary]),
            "total_reward": math.fsum(table["reward"]),
        }
    return found


def agents() -> dict[str, Any]:
    from cbo_gym.specs import known_agents

    return {key: value for name in known_agents() for key, value in runs(name).items()}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "environments": environments,
    "oracles": oracles,
    "agents": agents,
}


def on_one_thread(make: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Sums in parallel are added up in an order of their own."""
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(*arguments)
    finally:
        torch.set_num_threads(threads)


@cache
def load() -> dict[str, Any]:
    """The recorded hashes."""
    return json.loads(FILE.read_text())


def is_comparable(part: str) -> bool:
    """Whether a part of the record can be compared on this machine."""
    return part == "environments" or fingerprint() == load()["platforms"][part]


def differences(found: Mapping[str, Any], part: str) -> list[str]:
    """What differs from the record: bits on the platform where it was made, elsewhere totals by more than rounding."""
    same_platform = fingerprint() == load()["platforms"][part]
    recorded = load()[part]
    wrong = []
    for name, values in found.items():
        kept = recorded.get(name, {})
        if same_platform:
            wrong += [f"{name}: {what}" for what, value in values.items() if kept.get(what) != value]
        elif not math.isclose(values["total_reward"], kept["total_reward"], rel_tol=1e-6, abs_tol=1e-6):
            wrong.append(f"{name}: total_reward")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="record what is found instead of comparing")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; repeat for more")
    given = parser.parse_args()
    parts = given.part or list(PARTS)
    found = {name: on_one_thread(PARTS[name]) for name in parts}
    if given.write:
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        platforms = {**kept.get("platforms", {}), **dict.fromkeys(parts, fingerprint())}
        FILE.write_text(json.dumps({**kept, "platforms": platforms, **found}, indent=1) + "\n")
        return
    compared = [name for name in parts if is_comparable(name)]
    wrong = [f"{name}: {what}" for name in compared for what in differences(found[name], name)]
    print("\n".join(wrong) or f"{sum(len(found[name]) for name in compared)} records, all as before")
    if others := sorted(set(parts) - set(compared)):
        print(f"not compared, since recorded on another platform: {', '.join(others)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
