"""The zoo: the agents of this package, by the names of their entry points in pyproject.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

# Name of this package on PyPI, and group of the entry points of agents.
DISTRIBUTION = "cbo-gym"
GROUP = "cbo_gym.agents"


def checkout() -> Path | None:
    """Return the folder of the source code; None if the package is installed without it."""
    root = Path(str(files("cbo_gym"))).resolve().parent
    return root if _project(root).get("name") == DISTRIBUTION else None


def _project(root: Path) -> dict[str, Any]:
    path = root / "pyproject.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}) if path.is_file() else {}


@cache
def zoo() -> dict[str, str]:
    """Return the agents of this package by name: ``{"GP-UCB": "cbo_gym.agents.black_box.gp_ucb:GPUCB"}``.

    In a checkout they are read from the source, so that a new agent is known before the next installation.
    """
    if (root := checkout()) is not None:
        return dict(_project(root)["entry-points"][GROUP])
    try:
        points = distribution(DISTRIBUTION).entry_points.select(group=GROUP)
    except PackageNotFoundError:
        # The source was copied without an installation.
        return {}
    return {point.name: point.value for point in points}


def name_of(agent: object) -> str:
    """Return the name by which users know an agent or a class: that of its entry point in the zoo, else the class's."""
    cls = agent if isinstance(agent, type) else type(agent)
    path = f"{cls.__module__}:{cls.__qualname__}"
    return next((name for name, found in zoo().items() if found == path), cls.__name__)
