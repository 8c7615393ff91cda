"""Coarse searches for tests whose point is not what a search finds: the same code, with few points and iterations."""

import pytest

from cbo_gym.agents.common import search

COARSE = {"RAW_SAMPLES": 64, "PERTURBED": 8, "GENERATIONS": 1, "CHILDREN": 2, "RESTARTS": 4}
#: modules that have copies of some of these constants
COPIES = (
    "networks.exploration", "networks.eifn", "networks.excbo", "scopes.scope_arm", "several_objectives.qnehvi",
    "several_objectives.qnehvi_network",
)  # fmt: skip


def search_coarsely(patch: pytest.MonkeyPatch) -> None:
    """Let the agents of this process search with few points and two iterations."""
    for name, value in COARSE.items():
        patch.setitem(search.screen.__kwdefaults__, name.lower(), value)
        for module in COPIES:
            patch.setattr(f"cbo_gym.agents.{module}.{name}", value, raising=False)
    patch.setattr(search, "SCOUTING", 1)
    patch.setattr(search, "MAX_ITERATIONS", 2)
