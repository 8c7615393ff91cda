"""The zoo: published methods as agents, one module a method, named after it.

Modules are loaded on use, so that importing this package stays cheap: ``agents.GPUCB`` imports torch, ``import agents``
does not. What several agents share is in ``agents.features`` (actions as GP inputs), ``agents.search`` (maximising an
acquisition function), ``agents.partition`` and ``agents.tree_search`` (trees of cells), ``agents.masked`` (super arms),
``agents.network_agent`` (a surrogate for every node) and ``agents.surrogates``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = {
    "AVEStoOO": "agents.stooo",
    "AskTell": "agents.ask_tell",
    "CBO": "agents.cbo",
    "CaBO": "agents.cabo",
    "CellGPUCB": "agents.cell_gp_ucb",
    "CoBO": "agents.cobo",
    "CoCaBO": "agents.cocabo",
    "EICF": "agents.eicf",
    "EIFN": "agents.eifn",
    "EXCBO": "agents.excbo",
    "GPOO": "agents.gpoo",
    "GPTree": "agents.gptree",
    "GPUCB": "agents.gp_ucb",
    "IGPUCB": "agents.igp_ucb",
    "MCBO": "agents.mcbo",
    "METS": "agents.mets",
    "Optuna": "agents.optuna",
    "Random": "agents.random",
    "SEMUCB": "agents.sem_ucb",
    "SGB": "agents.sgb",
    "SSEMUCB": "agents.ssem_ucb",
    "SSEMUCBJO": "agents.ssem_ucb",
    "SSEMUCBNorm": "agents.ssem_ucb",
    "StableBaselines3": "agents.stable_baselines3",
    "StoOO": "agents.stooo",
}

__all__ = [
    "CBO",
    "EICF",
    "EIFN",
    "EXCBO",
    "GPOO",
    "GPUCB",
    "IGPUCB",
    "MCBO",
    "METS",
    "SEMUCB",
    "SGB",
    "SSEMUCB",
    "SSEMUCBJO",
    "AVEStoOO",
    "AskTell",
    "CaBO",
    "CellGPUCB",
    "CoBO",
    "CoCaBO",
    "GPTree",
    "Optuna",
    "Random",
    "SSEMUCBNorm",
    "StableBaselines3",
    "StoOO",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'agents' has no attribute {name!r}")
