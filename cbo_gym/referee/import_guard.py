"""Import guard: keep a third-party agent, in its own process, from importing the system that it plays.

There, systems, environments, oracles, the registry and the evaluator are closed. This is a safeguard against accidents,
not a sandbox: an agent can still read installed files or start another interpreter. Only blind play protects against
that, see the guide, *What is protected, and what is not*.
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

# Environment variable that marks the process of an isolated agent.
ISOLATION_VARIABLE = "CBO_GYM_ISOLATED"
# Modules and packages of ``cbo_gym`` that stay open, because agents need them.
OPEN = (
    "_util", "actions", "agent", "agent_registry", "agents", "errors", "referee.import_guard", "referee.player",
    "referee.serialization", "scm", "task", "version",
)  # fmt: skip
_OPEN_PREFIXES = tuple(f"{name}." for name in OPEN)


class ClosedError(OperationError):
    """An isolated agent used a module that is closed to it."""


def is_isolated() -> bool:
    """Return whether a third-party agent plays in this process."""
    return ISOLATION_VARIABLE in os.environ


def close() -> None:
    """From now on, import closed modules as empty ones, whose functions raise an error when they are called.

    So a script that imports the evaluator and defines an agent can still be imported for its agent.
    """
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, inner = fullname.partition(".")
        if package != "cbo_gym" or inner in ("", "referee") or f"{inner}.".startswith(_OPEN_PREFIXES):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        def get_refusal(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

            def refuse(*_: object, **__: object) -> NoReturn:
                raise ClosedError(
                    f"{module.__name__}.{name} is closed here: this agent plays in a separate process, which gets "
                    "its task, observations and rewards, and nothing else"
                )

            return refuse

        module.__getattr__ = get_refusal  # type: ignore[method-assign]
