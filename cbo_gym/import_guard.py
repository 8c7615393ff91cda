"""Modules closed to an outside agent in its own process: systems, environments, oracles, registry and evaluator.

An obstacle and no wall: nothing of the kind lies in the memory of such a process, and none of it is to be had by the
usual ways, so that nobody uses it by mistake. The installed files can be read all the same, or another interpreter
started. Against that only play that tells neither which system it is nor how it is turned helps: see the guide, *What
is protected, and what is not*.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from cbo_gym.errors import OperationError

VARIABLE = "CBO_GYM_ISOLATED"  # among the variables of such a process
#: modules and packages of ``cbo_gym`` that agents are made of, and that play them; all others are closed
OPEN = (
    "actions", "agent", "agent_cards", "agent_finder", "agent_state", "agents", "arguments", "channel", "errors",
    "files", "fronts", "import_guard", "labels", "lazy", "player", "progress", "scm", "seal", "serialization", "sums",
    "task", "validation", "version", "yaml_files",
)  # fmt: skip


class ClosedError(OperationError):
    """Something was used that an agent that plays in isolation has no access to."""


def is_isolated() -> bool:
    """Whether this process is one in which somebody else's agent plays."""
    return VARIABLE in os.environ


def close() -> None:
    """Put empty modules in the place of all that is closed: they can be imported, and whatever is called there fails.

    So a script that has an agent in it, and imports what evaluates it, can be imported for its agent.
    """
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, inner = fullname.partition(".")
        if package != "cbo_gym" or not inner or inner.partition(".")[0] in OPEN:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        def closed(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

            def refuse(*_: object, **__: object) -> NoReturn:
                raise ClosedError(
                    f"{module.__name__}.{name} is closed here: this agent plays in a process of its own, which is told "
                    "its task, observations and rewards, and nothing else"
                )

            return refuse

        module.__getattr__ = closed  # type: ignore[method-assign]
