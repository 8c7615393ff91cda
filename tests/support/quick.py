"""Coarse searches, for tests that do not depend on a search's result: the same code, few points and iterations."""

import pytest

from cbo_gym._util.fronts import search_pareto_set
from cbo_gym.agents.common import search
from cbo_gym.agents.gp import model
from cbo_gym.agents.gp.fitting import fit

#: values of all :class:`~cbo_gym.agents.common.search.Effort`
COARSE = {
    "raw_samples": 64,
    "perturbed": 8,
    "generations": 1,
    "children": 2,
    "restarts": 4,
    "scouting": 1,
    "max_iterations": 2,
}
#: iterations of the fits of GPs
FITTING = 8


def search_coarsely(patch: pytest.MonkeyPatch) -> None:
    """Let this process search for actions and fronts with few points and iterations, and fit GPs with few."""
    for name, value in COARSE.items():
        # A property takes precedence over the attributes of instances, of which agents' modules have made some.
        patch.setattr(search.Effort, name, property(lambda _, value=value: value, lambda *_: None), raising=False)
    patch.setitem(search_pareto_set.__kwdefaults__, "generations", 5)
    patch.setattr(f"{search_pareto_set.__module__}.SEPARATE_GENERATIONS", 2)
    patch.setattr(model, "fit", lambda *arguments: fit(*arguments[:3], min(arguments[3], FITTING)))
