"""The one list of the zoo: the entry points in pyproject.toml, published name -> class.

``__all__`` and the lazy imports of the package, ``-a '*'`` on the command line, the table of the docs and the types
that a checker sees all come from it. ``make zoo`` writes the stub ``__init__.pyi`` anew.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

DISTRIBUTION = "cbo-gym"
GROUP = "cbo_gym.agents"
#: what methods of one's own are derived from or built on
BASES = {
    "AskTell": "cbo_gym.agents.baselines.ask_tell:AskTell",
    "GPNetworkModel": "cbo_gym.agents.networks.network_model:GPNetworkModel",
}


@cache
def zoo() -> dict[str, str]:
    """The agents of this package by their published names: ``{"GP-UCB": "cbo_gym.agents.black_box.gp_ucb:GPUCB"}``."""
    return dict(_of_the_checkout() or _of_the_installation())


def classes() -> dict[str, str]:
    """The names that ``cbo_gym.agents`` exports: class -> module, in the order of ``__all__``."""
    paths = [path.partition(":") for path in (*zoo().values(), *BASES.values())]
    modules = {name: module for module, _, name in paths}
    return {name: modules[name] for name in sorted(modules, key=lambda name: (not name.isupper(), name))}


def _of_the_checkout() -> dict[str, str] | None:
    """Read at the source, where there is one: an entry point just added counts before the next installation."""
    path = Path(str(files("cbo_gym"))).resolve().parent / "pyproject.toml"
    if not path.is_file():
        return None
    project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    return project["entry-points"][GROUP] if project.get("name") == DISTRIBUTION else None


def _of_the_installation() -> dict[str, str]:
    try:
        points = distribution(DISTRIBUTION).entry_points.select(group=GROUP)
    except PackageNotFoundError:  # copied somewhere by hand
        return {}
    return {point.name: point.value for point in points}


def stub() -> str:
    """The text of ``__init__.pyi``: what the lazy imports of the package lead to."""
    modules: dict[str, list[str]] = defaultdict(list)
    for name, module in classes().items():
        modules[module].append(name)
    lines = ["# Written by make zoo: type checkers cannot follow lazy imports."]
    lines += [
        f"from {module} import {name} as {name}" for module, names in sorted(modules.items()) for name in sorted(names)
    ]
    listed = "".join(f'    "{name}",\n' for name in classes())
    return "\n".join([*lines, "", f"__all__ = [\n{listed}]", ""])
