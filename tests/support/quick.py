"""Coarse searches, for tests that do not depend on a search's result: the same code, few points and iterations."""

import pytest

from cbo_gym._util.fronts import search_pareto_set
from cbo_gym.agents.common import search
from cbo_gym.agents.gp import model
from cbo_gym.agents.gp.fitting import fit

COARSE = {"RAW_SAMPLES": 64, "PERTURBED": 8, "GENERATIONS": 1, "CHILDREN": 2, "RESTARTS": 4}
#: iterations of the fits of GPs
FITTING = 8
#: modules that have copies of some of these constants
COPIES = (
    "networks.exploration", "networks.eifn", "networks.excbo", "scopes.scope_arm", "several_objectives.qnehvi",
    "several_objectives.qnehvi_network",
)  # fmt: skip


def search_coarsely(patch: pytest.MonkeyPatch) -> None:
    """Let this process search for actions and fronts with few points and iterations, and fit GPs with few."""
    for name, value in COARSE.items():
        patch.setitem(search.screen.__kwdefaults__, name.lower(), value)
        for module in COPIES:
            patch.setattr(f"cbo_gym.agents.{module}.{name}", value, raising=False)
    patch.setitem(search_pareto_set.__kwdefaults__, "generations", 5)
    patch.setattr(f"{search_pareto_set.__module__}.ALONE", 2)
    patch.setattr(search, "SCOUTING", 1)
    patch.setattr(search, "MAX_ITERATIONS", 2)
    patch.setattr(model, "fit", lambda *arguments: fit(*arguments[:3], min(arguments[3], FITTING)))
