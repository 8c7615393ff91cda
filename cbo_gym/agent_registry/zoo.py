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
    """Return the agents of this package by name: ``{"GP-UCB": "cbo_gym.agents.black_box.gp_ucb:GPUCB"}``.

    In a checkout they are read from the source, so that a new agent is known before the next installation.
    """
    path = Path(str(files("cbo_gym"))).resolve().parent / "pyproject.toml"
    if path.is_file():
        project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:
            return dict(project["entry-points"][GROUP])
    try:
        points = distribution(DISTRIBUTION).entry_points.select(group=GROUP)
    except PackageNotFoundError:  # the source was copied without an installation
        return {}
    return {point.name: point.value for point in points}
