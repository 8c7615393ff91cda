"""The record of behaviour: hashes of what environments, oracles and agents do, against which changes are checked.

``python -m tests.record`` compares with ``tests/record.json``. Ids, agents or ``"MCBO on CBO/ToyGraph-v0"``, or
``--part environments`` (``oracles``, ``agents``), take some of it. Each record keeps the revisions of what it is of.
Where behaviour is meant to change, raise the revision; ``--new`` adds what is not recorded of today's revisions, and
changes nothing else. ``--write`` replaces records, which is right only where libraries have changed.

Bits differ between processors and library versions. Where both are as recorded, all values are compared. Elsewhere
the values that the record lists under ``elsewhere`` are: hashes that came out alike on two makes of processor, and
totals of rewards, within rounding. Left out is what a last digit turns into another action.
"""

import argparse
import hashlib
import json
import math
import platform
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import cbo_gym
from cbo_gym.agent_registry.finding import find_agent, known_agents, modes_of
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.envs import oracle_of
from cbo_gym.envs.registry import entries, find_entry
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.evaluation.runs.revisions import sources_now
from cbo_gym.task import Task

FILE = Path(__file__).with_suffix(".json")
ON = " on "  # between the agent and the environment in a record's name
TOTAL = "total_reward"
ELSEWHERE = ("task", "initial_data", TOTAL)  # values that come out alike on other processors, within rounding
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
    "CBO/GPs1-v0",
    "CBO/ShiftTarget5-v0",
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
    """Libraries and processor, on which the last digits of numbers depend."""
    import torch
    from threadpoolctl import threadpool_info

    kernels = {f"{lib['internal_api']} {lib.get('architecture', '')}".strip() for lib in threadpool_info()}
    return {
        **{name: version(name) for name in LIBRARIES},
        "python": ".".join(platform.python_version_tuple()[:2]),
        "machine": f"{platform.machine()}, {describe_machine()}",
        "kernels": ", ".join(sorted(kernels)),
        "numpy_cpu": " ".join(np.show_config(mode="dicts")["SIMD Extensions"]["found"]),
        "torch_cpu": torch.backends.cpu.get_cpu_capability(),
    }


def digest(thing: Any) -> str:
    """A hash of numbers, strings and containers, the same for int and float, and for list and tuple."""
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


def environment(env_id: str) -> dict[str, Any]:
    """Rounds, tasks and initial data of an environment."""
    env = gym.make(env_id)
    tasks = [cbo_gym.make_task(env, seed) for seed in SEEDS]
    played = [play(env_id, seed) for seed in SEEDS]
    return {
        "rounds": digest([one for one, _ in played]),
        "vector": play_vector(env_id),
        "task": digest([task_parts(task) for task in tasks]),
        "initial_data": digest([[tuple(past) for past in task.initial_data] for task in tasks]),
        "total_reward": math.fsum(total for _, total in played),
    }


def oracle(env_id: str) -> dict[str, Any]:
    """The optimum of an environment, without the recorded one."""
    best = oracle_of(gym.make(env_id)).find_optimum()
    found = [best.value, best.action, best.standard_error, best.random_value, best.random_standard_error]
    return {"optimum": digest(found), "total_reward": best.value}


def run(name: str) -> dict[str, Any] | None:
    """The run of an agent on an environment without its seconds; None if it does not play there."""
    agent, env = name.split(ON)
    try:
        played = cbo_gym.evaluate(agent, env, 0, horizon=AGENT_ROUNDS)
    except cbo_gym.UnsupportedModeError:
        return None
    table = {column: played.table[column].to_list() for column in played.columns if not column.endswith("seconds")}
    summary = [played.mode, played.choices, played.optimum, played.optimum_standard_error, played.random_value]
    return {"table": digest([table, summary]), "total_reward": math.fsum(table["reward"])}


PARTS: dict[str, Callable[[str], dict[str, Any] | None]] = {
    "environments": environment,
    "oracles": oracle,
    "agents": run,
}


def names(part: str, chosen: Collection[str] = ()) -> list[str]:
    """The names of a part's records, or those that are chosen by id, agent or name."""
    known = [entry.id for entry in entries()]
    if part == "agents":
        known = [f"{agent}{ON}{env}" for agent in known_agents() for env in PLAYED_BY_AGENTS if _plays(agent, env)]
    return [name for name in known if not chosen or not set(chosen).isdisjoint((name, *name.split(ON)))]


def _plays(agent: str, env: str) -> bool:
    return find_entry(bare_name(env)).mode in modes_of(find_agent(agent))


def revisions(name: str) -> dict[str, int]:
    """Today's revisions of the environment and the agent of a record."""
    return {what: int(number) for what, number in sources_now(map(bare_name, name.split(ON))).items()}


def found_of(part: str, chosen: Collection[str] = ()) -> dict[str, Any]:
    """Records of today, made on one thread."""
    return {name: found for name in names(part, chosen) if (found := on_one_thread(PARTS[part], name)) is not None}


def on_one_thread(make: Callable[..., Any], *arguments: Any) -> Any:
    """Call with one thread: parallel sums are added up in any order."""
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
    """The file: ``platforms``, and for each part the records by name."""
    return json.loads(FILE.read_text())


def is_recorded(name: str, part: str) -> bool:
    """Whether there is a record of today's revisions."""
    return load()[part].get(name, {}).get("revisions") == revisions(name)


def differences(found: Mapping[str, Any], part: str) -> list[str]:
    """Differences from the record, each with what to do about it."""
    wrong = []
    for name, values in found.items():
        if not is_recorded(name, part):
            wrong.append(f"{name} is not recorded of today's revisions: python -m tests.record --new")
        elif others := _others(values, load()[part][name]):
            raised = " or ".join(f"{what} (now {number})" for what, number in revisions(name).items())
            wrong.append(f"{name}: {', '.join(others)}; if that is meant, raise the revision of {raised}")
    return wrong


def _others(values: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """Names of values that are not as recorded: all on the same platform, else those that can be compared."""
    if load()["platforms"][kept["platform"]] == fingerprint():
        return [what for what, value in values.items() if kept[what] != value]
    alike = {what: kept[what] == values[what] for what in kept["elsewhere"]}
    if TOTAL in alike:
        alike[TOTAL] = math.isclose(values[TOTAL], kept[TOTAL], rel_tol=1e-6, abs_tol=1e-6)
    return [what for what, same in alike.items() if not same]


def write(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Put records, by part and name, into the file, as of this platform."""
    kept = load()
    if fingerprint() not in kept["platforms"]:
        kept["platforms"].append(fingerprint())
    about = {"platform": kept["platforms"].index(fingerprint())}
    for part, records in found.items():
        for name, values in records.items():
            elsewhere = [what for what in ELSEWHERE if what in values]
            kept[part][name] = {"revisions": revisions(name), **about, "elsewhere": elsewhere, **values}
        known = names(part)
        kept[part] = {name: kept[part][name] for name in known if name in kept[part]}
    FILE.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="ids of environments, names of agents; everything by default")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; repeat for more")
    parser.add_argument("--new", action="store_true", help="add what is not recorded of today's revisions")
    parser.add_argument("--write", action="store_true", help="record what is found instead of comparing")
    given = parser.parse_args()
    chosen = {part: names(part, given.names) for part in given.part or PARTS}
    if given.new:
        chosen = {part: [name for name in some if not is_recorded(name, part)] for part, some in chosen.items()}
    found = {part: found_of(part, some) if some else {} for part, some in chosen.items()}
    count = sum(map(len, found.values()))
    if given.new or given.write:
        write(found)
        print(f"{count} records written")
        return
    wrong = [f"{part}: {what}" for part, records in found.items() for what in differences(records, part)]
    print("\n".join(wrong) or f"{count} records, all as before")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
