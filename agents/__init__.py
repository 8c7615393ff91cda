"""The zoo: published methods as agents, one module per method, in rooms by what they play and believe.

``from cbo_gym.agents import MCBO`` is the name to use; modules are loaded on use, so that importing this package stays
cheap. The rooms: ``baselines`` (random play, outside optimisers), ``black_box`` (models of the reward alone),
``networks`` (a model of every node), ``intervention_sets``, ``scopes``, ``cells`` and ``super_arms`` (by what an
action is), ``several_objectives`` (rewards that are vectors), and ``choice`` (which of them plays). ``surrogates``
holds the models, ``toolbox`` what all share: actions as inputs, search, argument checks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

if __name__ != "cbo_gym.agents":
    raise ImportError(f"this folder is the package cbo_gym.agents; import it by that name, not as {__name__!r}")

from cbo_gym.agents.zoo import classes
from cbo_gym.errors import naming_the_extra


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(classes())
    if name in classes():
        with naming_the_extra(f"cbo_gym.agents.{name}"):
            return getattr(import_module(classes()[name]), name)
    raise AttributeError(f"module 'cbo_gym.agents' has no attribute {name!r}; it has {', '.join(classes())}")


def __dir__() -> list[str]:
    return sorted([*globals(), *classes()])
