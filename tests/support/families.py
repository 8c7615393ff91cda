"""Agents by family, and a small task for each mode and agent."""

import pytest

#: one agent of each family, by folders; tests of the others are slow
ONE_A_FAMILY = ("Random", "CBO", "GP-UCB", "GPOO", "SSEM-UCB", "TS", "CoCaBO", "DCBO", "CBO-MW", "CausalParetoSelect")


def by_family(agents):
    """Return agents as parameters; those outside :data:`ONE_A_FAMILY` are slow."""
    return [pytest.param(agent, marks=[] if agent in ONE_A_FAMILY else [pytest.mark.slow]) for agent in agents]


def one_mode_each(pairs, *others):
    """Return pairs of agent and mode; all are slow but one agent of each family in its first mode, and ``others``."""
    first = {agent: mode for agent, mode in reversed(pairs) if agent in ONE_A_FAMILY}
    usual = [*first.items(), *others]
    return [pytest.param(*pair, marks=[] if pair in usual else [pytest.mark.slow]) for pair in pairs]


#: a small task of each mode in which actions can be chosen together
TOGETHER = {
    "soft": "CBO/Dropwave-v0",
    "hard": "CBO/ToyGraph-v0",
    "aggregated": "CBO/GPBandit1-v0",
    "masked": "CBO/SSEMPeriodic-v0",
    "discrete": "CBO/XYZWSTBandit-v0",
}
#: the environments of agents that play no other
ALONE = {
    "ParallelBandit": "CBO/ParallelBandit-v0",
    **dict.fromkeys(("CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network"), "CBO/PSAGraph-Cost-v0"),
}
