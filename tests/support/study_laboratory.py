"""A small laboratory: one description of a study in each mode, and the outcomes of its trials."""

import numpy as np

from cbo_gym.agent_registry.finding import find_agent, modes_of
from cbo_gym.agent_registry.zoo import zoo

DIAGRAM = "dag { x -> m -> y; z -> y; x <-> y }"
NODES = ("x", "z", "m", "y")
MODES = ("hard", "soft", "contextual", "discrete", "aggregated")
# These agents need an extra task: several objectives, a parallel graph, or a library that trains.
NOT_HERE = ("ParallelBandit", "StableBaselines3", "CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network")
PAIRS = [
    (agent, mode) for agent in zoo() for mode in modes_of(find_agent(agent)) if mode in MODES and agent not in NOT_HERE
]
PARAMETERS = {"a": {"node": "x", "bounds": (0.0, 2.0)}, "b": {"node": "m", "bounds": (-1.0, 1.0)}}


def description(mode):
    """Return the arguments of ``create_study`` for a mode."""
    fields = {"reward": "y", "mode": mode, "diagram": DIAGRAM}
    if mode == "hard":
        fields["settable"] = {"x": (0.0, 2.0), "z": (0.0, 2.0)}
    elif mode == "contextual":
        fields |= {"contexts": ["x"], "settable": {"m": (0.0, 2.0)}}
    elif mode == "discrete":
        fields |= {
            "arms": [{}, {"x": 0.0}, {"x": 1.0}, {"z": 2.0}, {"x": 1.0, "z": 0.0}],
            "reward_range": (-20.0, 20.0),
        }
    else:
        fields["parameters"] = PARAMETERS
    return fields


def bounds(mode):
    """Return the bounds of everything that can be set."""
    fields = description(mode)
    return fields.get("settable") or {name: entry["bounds"] for name, entry in fields.get("parameters", {}).items()}


def context(mode, rng):
    return {"x": float(rng.normal(1.0, 0.3))} if mode == "contextual" else None


def outcome(mode, do, rng, seen=None):
    """Return the values of all variables under ``do``."""
    a, b = (float(np.mean(do.get(name, 0.0))) if mode in ("soft", "aggregated") else 0.0 for name in PARAMETERS)
    x = do.get("x", (seen or {}).get("x", rng.normal(1.0, 0.3))) + a
    z = do.get("z", rng.normal(1.0, 0.3))
    m = do.get("m", np.sin(x) + b + rng.normal(0.0, 0.1))
    y = np.clip(m - 0.3 * z**2 + rng.normal(0.0, 0.05), -20.0, 20.0)
    return {"x": float(x), "z": float(z), "m": float(m), "y": float(y)}


def everything_set(mode, rng):
    """Return an action that sets as much as possible."""
    if mode == "discrete":
        return {"x": 1.0}
    if mode == "aggregated":
        return {name: (low, (low + high) / 2) for name, (low, high) in bounds(mode).items()}
    return {name: float(rng.uniform(low, high)) for name, (low, high) in bounds(mode).items()}


def rows(mode, kind, count, rng):
    """Return rows of past data, and the action of each row.

    Args:
        mode: mode of the study.
        kind: ``"observed"``, ``"set"`` (everything was always set) or ``"constant"`` (all values are 1).
        count: number of rows.
        rng: random generator.
    """
    free = {} if mode in ("hard", "contextual", "discrete") else None
    done = [everything_set(mode, rng) if kind == "set" or free is None else free for _ in range(count)]
    outcomes = [outcome(mode, do, rng) for do in done]
    return [dict.fromkeys(NODES, 1.0) if kind == "constant" else row for row in outcomes], done
