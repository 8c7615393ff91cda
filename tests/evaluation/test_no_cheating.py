"""Agents see the Task, the observations and the rewards; never mechanisms, environments or optima."""

import ast
import functools
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path

import gymnasium as gym
import pytest

import cbo_gym
from cbo_gym import agents, evaluate
from cbo_gym.oracle import Optimum, Oracle
from cbo_gym.problems import Problem
from cbo_gym.registry import EnvEntry, RecordedOptimum, entries
from cbo_gym.scm import StructuralCausalModel, Variable
from tests.helpers import Recorder

FORBIDDEN = (
    Problem, StructuralCausalModel, Variable, gym.Env, Oracle, Optimum, EnvEntry, RecordedOptimum,
)  # fmt: skip
PACKAGES = {
    "agents": Path(agents.__file__).parent,
    "cbo_gym": Path(cbo_gym.__file__).parent,
}


def reachable(root):
    """Everything that can be reached from an object through containers, attributes and closures."""
    seen, queue = {}, [root]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, type | types.ModuleType | str | bytes | int | float):
            continue
        seen[id(item)] = item
        if isinstance(item, Mapping):
            queue += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            queue += list(item)
        elif isinstance(item, functools.partial):
            queue += [item.func, *item.args, *item.keywords.values()]
        elif isinstance(item, types.MethodType):
            queue += [item.__self__, item.__func__]
        elif isinstance(item, types.FunctionType):
            queue += [cell.cell_contents for cell in item.__closure__ or ()] + list(item.__defaults__ or ())
        queue += list(getattr(item, "__dict__", {}).values())
        slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
        queue += [getattr(item, name) for name in slots if hasattr(item, name)]
    return list(seen.values())


@pytest.mark.parametrize("env_id", [entry.id for entry in entries()])
def test_nothing_handed_to_an_agent_leads_to_the_mechanisms(env_id):
    recorder = Recorder()
    evaluate(recorder, env_id, seed=0, horizon=3)
    found = reachable(recorder.handed)
    assert len(found) > 20
    leaks = [item for item in found if isinstance(item, FORBIDDEN)]
    assert leaks == []
    infos = [item for item in recorder.handed if isinstance(item, dict) and "round" in item]
    assert infos
    assert all(set(info) == {"round", "intervention"} for info in infos)


def test_a_known_composition_leaks_no_more_than_itself():
    recorder = Recorder()
    evaluate(recorder, "CBO/Ackley-v0(known_composition=True)", seed=0, horizon=1)
    task = recorder.handed[0]
    assert task.composition is not None
    assert not [item for item in reachable(recorder.handed) if isinstance(item, FORBIDDEN)]


def test_the_search_would_find_a_leak():
    env = gym.make("CBO/Dropwave-v0")
    assert [item for item in reachable([lambda: env]) if isinstance(item, FORBIDDEN)]


def imports_of(path):
    """Modules that a source file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


ALLOWED_FOR_AGENTS = (
    "cbo_gym.agents",
    "cbo_gym.Agent",
    "cbo_gym.Mode",
    "cbo_gym.Round",
    "cbo_gym.Task",
    "cbo_gym.UnsupportedModeError",
    "cbo_gym.agent",
    "cbo_gym.errors",
    "cbo_gym.flat",
    "cbo_gym.task",
    "cbo_gym.envs.cells",  # geometry of the unit box: both sides must mean the same points
    "cbo_gym.envs.spaces",
    "cbo_gym.scm.diagram",
    "cbo_gym.scm.noise",
    "cbo_gym.scm.scopes",  # functions of the diagram, which the task tells
)
RULES = {
    "scm": ("cbo_gym.scm", "cbo_gym.files"),
    "problems": ("cbo_gym.scm", "cbo_gym.problems"),
    "envs": (
        "cbo_gym.scm", "cbo_gym.problems", "cbo_gym.envs", "cbo_gym.task", "cbo_gym.registry", "cbo_gym.oracle",
        "cbo_gym.contextual_oracle",
    ),
}  # fmt: skip


def within(name, allowed):
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


@pytest.mark.parametrize("path", sorted(PACKAGES["agents"].rglob("*.py")), ids=lambda path: path.name)
def test_agents_import_neither_problems_nor_oracle(path):
    ours = [name for name in imports_of(path) if name.split(".")[0] == "cbo_gym"]
    assert [name for name in ours if not within(name, ALLOWED_FOR_AGENTS)] == []


@pytest.mark.parametrize("folder", sorted(RULES))
def test_dependencies_point_one_way(folder):
    for path in (PACKAGES["cbo_gym"] / folder).rglob("*.py"):
        ours = [name for name in imports_of(path) if name.split(".")[0] == "cbo_gym"]
        wrong = [name for name in ours if not within(name, RULES[folder])]
        assert wrong == [], f"{path.name} imports {wrong}"


def test_the_core_does_not_import_the_zoo():
    for path in PACKAGES["cbo_gym"].rglob("*.py"):
        assert not [name for name in imports_of(path) if within(name, ["cbo_gym.agents"])]


@pytest.mark.parametrize("statement", ["import cbo_gym", "import cbo_gym.agents", "import cbo_gym.cli"])
def test_importing_is_light(statement):
    code = f"{statement}; import sys; print([m for m in ('torch', 'matplotlib', 'scipy.stats') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
