"""Pickles for an isolated agent: only objects of listed classes, stored as the arguments from which they are made.

So an agent cannot reach an environment through other attributes, such as a cached value or the generator of a space.
"""

from __future__ import annotations

import pickle
from dataclasses import fields
from inspect import signature
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, MappingProxyType
from typing import Any

import numpy as np
from gymnasium import spaces

from cbo_gym import task as tasks
from cbo_gym.actions import codec as codecs
from cbo_gym.actions.costs import Costs
from cbo_gym.actions.domains import Categorical, Domains, Integer, Range
from cbo_gym.actions.limited_spaces import LimitedBox, LimitedDict
from cbo_gym.actions.limits import Limits
from cbo_gym.actions.spaces import CellBox, GridBox, SparseBox, SuperArmSpace
from cbo_gym.errors import ArgumentError
from cbo_gym.referee.player import play
from cbo_gym.scm import components, noise
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.expression import Expression, trace

# Dataclasses are made from the fields of their __init__, other classes from the attributes in _ARGUMENTS.
_DATACLASSES = (
    *(kind for kind in vars(tasks).values() if isinstance(kind, type) and issubclass(kind, tasks.Task)),
    tasks.GraphKnowledge, tasks.Constraint, tasks.Objective,
    noise.Zero, noise.Normal, noise.Uniform, noise.GaussianMixture, noise.Arcsine, noise.TruncatedNormal,
    noise.Empirical, noise.Discrete, noise.DistributionFamily, components.Linear, components.Polynomial,
    components.Periodic, components.Tanh, components.Sum, Costs, Expression,
)  # fmt: skip
_CODECS = [kind for kind in vars(codecs).values() if isinstance(kind, type) and issubclass(kind, codecs.Codec)]
_ARGUMENTS: dict[type, tuple[str, ...]] = {
    **{kind: tuple(field.name for field in fields(kind) if field.init) for kind in _DATACLASSES},
    spaces.Box: ("low", "high", "dtype"), spaces.Discrete: ("n", "start"), spaces.Dict: ("spaces",),
    SparseBox: ("null", "max_interventions", "levels"), GridBox: ("dim", "levels"), CellBox: ("dim",),
    LimitedBox: ("limits",), LimitedDict: ("spaces", "sets", "limits"), Limits: ("statements", "domains", "null"),
    SuperArmSpace: ("arms", "size"), Domains: ("intervals",), Range: ("low", "high", "step", "scale", "digits"),
    Integer: ("low", "high"), Categorical: ("categories",), CausalDiagram: (
        "nodes", "directed", "bidirected", "allow_cycles"
    ),
    **{kind: tuple(signature(kind).parameters) for kind in _CODECS},
}  # fmt: skip
# Classes whose objects are pickled by their own methods, like NumPy's numbers and types.
_VALUES = (np.ndarray, tasks.Round)


def pack(value: Any) -> bytes:
    """Pickle a value for an isolated agent; a task's composition, which is a function, is sent as its traced steps."""
    buffer = BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, MappingProxyType):
            return dict, (dict(value),)
        # Python 3.11.0 to 3.11.3 pickle a member of an enumeration by getattr, which may not be referenced.
        if isinstance(value, tasks.Mode):
            return tasks.Mode, (value.value,)
        if type(value) in _ARGUMENTS:
            return _make, (type(value), _arguments(value))
        if type(value) in _VALUES or isinstance(value, np.generic | np.dtype) or _may_be_referenced(value):
            return NotImplemented
        raise ArgumentError(
            f"an object of type {type(value).__qualname__} cannot be sent to an agent in a separate process; use the "
            "classes of cbo_gym, or play the agent with cbo_gym.evaluate"
        )


def _may_be_referenced(value: Any) -> bool:
    """Return whether a pickle may contain this class or function, which it stores by its import path."""
    if not isinstance(value, type | FunctionType | BuiltinFunctionType):
        return False
    # The worker process calls play.
    allowed = (*_ARGUMENTS, *_VALUES, tasks.Mode, dict, _make, play)
    return str(value.__module__).partition(".")[0] == "numpy" or value in allowed


def _arguments(value: Any) -> dict[str, Any]:
    arguments = {name: getattr(value, name) for name in _ARGUMENTS[type(value)]}
    if isinstance(value, Domains) and value.named:
        arguments["intervals"] = dict(zip(value.names, value.intervals, strict=True))
    if arguments.get("composition") is not None:
        arguments["composition"] = trace(arguments["composition"], value.nodes[:-1])
    return arguments


def _make(cls: type, arguments: dict[str, Any]) -> Any:
    return cls(**arguments)
