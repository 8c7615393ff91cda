"""The published names of this package's agents: the entry points in pyproject.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

DISTRIBUTION = "cbo-gym"
GROUP = "cbo_gym.agents"


@cache
def zoo() -> dict[str, str]:
    """The agents of this package by their published names: ``{"GP-UCB": "cbo_gym.agents.black_box.gp_ucb:GPUCB"}``."""
    return dict(_of_the_checkout() or _of_the_installation())


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
