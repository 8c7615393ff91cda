"""Small tasks of the modes, and whether two runs are the same."""

import pytest

from cbo_gym.evaluation.runs.results import SECONDS

#: one agent of each room; the others are slow tests
ONE_A_ROOM = ("Random", "CBO", "GP-UCB", "GPOO", "SSEM-UCB", "TS", "CoCaBO", "DCBO", "CBO-MW", "CausalParetoSelect")


def by_room(cases, agent_of=lambda case: case):
    """Cases as parameters, those of agents that are not among :data:`ONE_A_ROOM` marked as slow."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else [case]), marks=[] if fast else [pytest.mark.slow])
        for case in cases
        for fast in [agent_of(case) in ONE_A_ROOM]
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


def rounds_alike(one, other):
    return all(
        one.table[name].equals(other.table[name], null_equal=True) for name in one.table.columns if name not in SECONDS
    )
