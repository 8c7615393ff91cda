"""Agents by family, and a small task for each mode and agent."""

import pytest

#: one agent of each family, by folders; tests of the others are slow
ONE_A_FAMILY = ("Random", "CBO", "GP-UCB", "GPOO", "SSEM-UCB", "TS", "CoCaBO", "DCBO", "CBO-MW", "CausalParetoSelect")


def by_family(cases, agent_of=lambda case: case):
    """Cases as parameters, those of agents that are not among :data:`ONE_A_FAMILY` marked as slow."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else [case]), marks=[] if fast else [pytest.mark.slow])
        for case in cases
        for fast in [agent_of(case) in ONE_A_FAMILY]
    ]


#: a small task of each mode in which actions can be chosen together
TOGETHER = {
    "soft": "CBO/Dropwave-v0",
    "hard": "CBO/ToyGraph-v0",
    "aggregated": "CBO/GPBandit1-v0",
    "masked": "CBO/SSEMPeriodic-v0",
    "discrete": "CBO/XYZWSTBandit-v0",
}
#: what these play, and nothing else
ALONE = {
    "ParallelBandit": "CBO/ParallelBandit-v0",
    **dict.fromkeys(("CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network"), "CBO/PSAGraph-Cost-v0"),
}
