"""Types of objects that agents must not reach, and a search for all objects that an object reaches."""

import functools
import types
from collections.abc import Mapping

import gymnasium as gym

from cbo_gym.envs.registry import EnvEntry
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.oracles import Optimum, Oracle
from cbo_gym.problems import Problem
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.scm import System, Variable

FORBIDDEN = (
    Problem, System, Variable, Dynamics, gym.Env, Oracle, Optimum, EnvEntry, RecordedOptimum,
)  # fmt: skip


def reachable(root):
    """Return all objects that can be reached from an object through containers, attributes and closures."""
    visited, queue = {}, [root]
    while queue:
        item = queue.pop()
        if id(item) in visited or isinstance(item, type | types.ModuleType | str | bytes | int | float):
            continue
        visited[id(item)] = item
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
        slots = [name for cls in type(item).__mro__ for name in getattr(cls, "__slots__", ())]
        queue += [getattr(item, name) for name in slots if hasattr(item, name)]
    return list(visited.values())
