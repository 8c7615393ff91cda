"""What agents promise: the contract in longer runs and under options, refused modes, checked arguments."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cbo_gym import UnsupportedModeError, agents
from cbo_gym.agent_registry.finding import agent_of, find_agent, known_agents, modes_of
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Mode
from cbo_gym.testing import check_agent
from tests.support.environments import FIRST_OF_MODE
from tests.support.families import ALONE
from tests.support.loop import make

FIG1, PERIODIC, PENNY = "CBO/CoCaFig1-v0", "CBO/SSEMPeriodic-v0", "CBO/Dropwave-Penny-v0"
MASKED = ("SSEM-UCB", "SSEM-UCB-JO", "SSEM-UCB-Norm", "SEM-UCB", "METS", "SGB", "IGP-UCB")
ARMS = ("UCB", "TS(sets='minimal')", "POMIS-UCB", "POMIS-TS", "SuccessiveRejects")
CELLS = ("CBO/GPBandit2-v0(arity=3, integral=True)", "CBO/Dropwave-Aggregated-v0(noise_std=0.1, points=5)")
SLICES = "CBO/DCBOStat-v0(slices=2, trials=1)"  # of which two rounds are played, and then more
RUNS = [
    ("CoCaBO(index='published')", FIG1, 2),
    ("CoBO", FIG1, 2),
    *((agent, PERIODIC, 3) for agent in ("SSEM-UCB", "SGB")),
    ("SSEM-UCB-JO(degree='search')", PERIODIC, 3),
    ("CBO-MW", PENNY, 2),
    ("CIV", "CBO/ShiftTarget5-v0", 3),
    ("CBO-Restarted", SLICES, 3),
    ("FastPKGFN(samples=2)", "CBO/GPs1-v0", 2),
    *((agent, "CBO/XYZWBandit-v0", 40) for agent in ARMS[:2]),
    ("ParallelBandit", "CBO/ParallelBandit-v0(causes=4)", 40),
    *((agent, CELLS[0], 4) for agent in ("GPOO", "CellGP-UCB")),
    ("qNEHVI-Sets(samples=4)", None, 2),
]
#: other agents of the same families, and options
MORE_RUNS = [
    *((f"CoCaBO({option})", FIG1, 2) for option in ("backend='warped'", "use_contexts=False")),
    *((agent, PERIODIC, 3) for agent in ("SSEM-UCB-Norm", "SEM-UCB", "METS", "IGP-UCB", "SSEM-UCB-JO(external='sum')")),
    *((agent, SLICES, 3) for agent in ("ABO", "GP-UCB-Restarted", "DCBO")),
    *((agent, "CBO/GPs1-v0", 3) for agent in ("PKGFN(samples=4)", "TSFN", "FullEIFN", "KGFN", "FullRandom")),
    ("CascadeEI", "CBO/CascadeMatyas-v0", 3),
    *((agent, "CBO/XYZWBandit-v0", 40) for agent in ARMS[2:]),
    ("EXCBO(components='bic')", "CBO/Dropwave-Noisy-v0", 2),
    *((agent, CELLS[0], 4) for agent in ("StoOO", "AVE-StoOO", "GPTree")),
    *((agent, CELLS[1], 4) for agent in ("GPOO", "StoOO", "AVE-StoOO", "GPTree", "CellGP-UCB")),
    ("qNEHVI-Network(draws=4)", None, 2),
]
OUTSIDE = [
    *("Optuna", "Optuna(sampler='CMA-ES')"),
    *("StableBaselines3", "StableBaselines3(algorithm='SAC')", "StableBaselines3(algorithm='DQN')"),
]
USUAL = [("StableBaselines3", "hard")]
#: agents that no other test of the contract plays by default, each in the first of its modes
OTHERS = sorted({*known_agents()} - {bare_name(agent) for agent, _, _ in (*RUNS, *MORE_RUNS)} - {"Random", *OUTSIDE})
#: agents that act as another in this list, or share their base class with one
LIKE_OTHERS = ("Auto", "qNEHVI", "CBO-U", "HCBO", "CEO", "CaBO", "EICF", "EXCBO")


def first_env(agent: str) -> str:
    if agent in ALONE:
        return ALONE[agent]
    played = modes_of(find_agent(agent))
    return next(env_id for mode, env_id in FIRST_OF_MODE.items() if mode in played)


@pytest.mark.parametrize(
    ("agent", "env_id", "rounds"),
    [
        *RUNS,
        *(pytest.param(*run, marks=pytest.mark.slow) for run in MORE_RUNS),
        *(pytest.param(agent, None, 2, marks=[pytest.mark.slow] * (agent in LIKE_OTHERS)) for agent in OTHERS),
    ],
)
@pytest.mark.filterwarnings("ignore:.*out of date")
@pytest.mark.usefixtures("coarse_search")
def test_agents_keep_their_contract(agent: str, env_id: str | None, rounds: int) -> None:
    with np.errstate(all="raise"):
        check_agent(agent, env_id or first_env(bare_name(agent)), rounds=rounds)


@pytest.mark.parametrize(
    ("agent", "env_id"),
    [
        pytest.param(agent, env_id, marks=[] if agent == "Optuna" or (agent, mode) in USUAL else [pytest.mark.slow])
        for agent in OUTSIDE
        for mode, env_id in FIRST_OF_MODE.items()
    ],
)
def test_agents_of_other_libraries_keep_it_once_they_learn(agent: str, env_id: str) -> None:
    """By default one method on all modes, the other library on one."""
    check_agent(agent, env_id, rounds=12)


@pytest.mark.parametrize(
    ("agent", "env_id"),
    [
        *((agent, "CBO/Alpine2-v0") for agent in ("Random", "GP-UCB", "EICF", "EIFN", "MCBO", "EXCBO", *OUTSIDE)),
        *((agent, PERIODIC) for agent in MASKED),
    ],
)
@pytest.mark.filterwarnings("ignore:.*out of date")
@pytest.mark.usefixtures("coarse_search")
def test_seeds_differ(agent: str, env_id: str) -> None:
    task, made, first = replace(make(env_id, 0, 15)[1], initial_data=()), agent_of(agent), set()
    for seed in range(4):
        made.reset(task, seed)
        first.add(np.asarray(made.act({})).tobytes())
    assert len(first) > 1


@pytest.mark.parametrize("name", ["CBO", "GP-UCB", "SGB"])
def test_other_modes_are_refused(name: str) -> None:
    agent = agent_of(name)
    mode = next(mode for mode in Mode if mode not in agent.modes)
    task = make(FIRST_OF_MODE[mode], 0, 2)[1]
    played = ", ".join(sorted(agent.modes))
    with pytest.raises(UnsupportedModeError, match=f"^{name} plays {played}; {task.env_id} is {mode}"):
        agent.reset(task, 0)


NOT_NEGATIVE = "must be a finite number of at least 0; given"
SSEM_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"degree": 0}, "degree must be a whole number from 1 to 4, or 'search'; given 0"),
    ({"degree": "serch"}, r"given 'serch'; did you mean 'search'\?"),
    ({"external": "summ"}, r"given 'summ'; did you mean 'sum'\?"),
    ({"centre": "mean"}, r"given 'mean'; did you mean 'means'\?"),
    ({"internal_scale": -0.1}, "internal_scale must be a finite number of at least 0; given -0.1"),
    ({"external_scale": math.inf}, "external_scale must be"),
    ({"reach": 0.0}, "reach must be a finite number above 0; given 0.0"),
]
ARGUMENTS: list[tuple[str, dict[str, Any], str]] = [
    ("CBO", {"costs": {"X0": 0.0}}, "cost of X0 must be a finite number above 0; given 0.0"),
    ("CBO", {"costs": {("X1", "X0"): 0.0}}, "cost of X0, X1 must be a finite number above 0; given 0.0"),
    ("CBO", {"costs": {(): 1.0}}, r"variables, or sets of them as tuples or frozensets .*; given \{\(\): 1.0\}"),
    ("CBO", {"max_observations": 0}, "max_observations must be a whole number from 1 to 10000; given 0"),
    ("CBO", {"scaling": "divided"}, r"scaling must be one of .*; given 'divided'; did you mean 'divide'"),
    ("CBO", {"in_common": 1}, "in_common must be True or False; given 1"),
    ("CBO", {"targets": "pomi"}, r"given 'pomi'; did you mean 'POMIS'"),
    ("CBOU", {"most_parents": 0}, "most_parents"),
    ("CEO", {"costs": {"X": 0.0}}, "the cost of X"),
    ("HCBO", {"weighing": 0}, "weighing"),
    ("HCBO", {"starts": 0}, "starts"),
    ("LearnedGraph", {"player": "EIFN"}, "player"),
    ("LearnedGraph", {"observations": 5}, "observations must be a whole number from 10 to 10000"),
    ("LearnedGraph", {"alpha": 1.0}, "alpha must lie between 0 and 1"),
    *(("GPUCB", {"beta": beta}, f"beta {NOT_NEGATIVE}") for beta in (-1.0, math.nan, math.inf)),
    *(("EICF", {"samples": n}, "samples must be a whole number from 1 to 4096; given") for n in (0, -3, 1.5, True)),
    ("EIFN", {"samples": 0}, "samples must be"),
    *((name, {"beta": -1.0}, "beta must be") for name in ("MCBO", "EXCBO", "CBOMW", "GPMW")),
    *((name, {"rate": rate}, "rate") for name in ("CBOMW", "GPMW") for rate in (-0.1, math.inf)),
    *((name, {"samples": 0}, "samples must be") for name in ("MCBO", "EXCBO")),
    ("MCBO", {"restarts": 2.5}, "restarts must be"),
    *(("EXCBO", {"components": components}, "components must be") for components in (0, "aic")),
    ("CoCaBO", {"beta": -0.1}, f"beta {NOT_NEGATIVE} -0.1"),
    ("CoCaBO", {"rho": math.nan}, f"rho {NOT_NEGATIVE} nan"),
    ("CoCaBO", {"backend": "hebo"}, r"backend must be one of \['plain', 'warped', 'botorch'\]; given 'hebo'"),
    *(("SSEMUCBJO", *row) for row in SSEM_ARGUMENTS),
    ("SEMUCB", {"internal_scale": math.nan}, f"internal_scale {NOT_NEGATIVE}"),
    ("SGB", {"miss": 1.0}, r"miss must lie between 0 and 1; given 1\.0"),
    ("IGPUCB", {"lengthscale": -1.0}, "lengthscale must be a finite number above 0"),
    ("IGPUCB", {"delta": 0.0}, "delta must lie between 0 and 1"),
    ("GPOO", {"variation": 0.0}, "variation must be a finite number above 0; given 0.0"),
    ("GPOO", {"beta": "wide"}, r"beta must be one of \['practical', 'theory'\]; given 'wide'"),
    ("GPOO", {"error": 1.0}, "error must lie between 0 and 1; given 1.0"),
    ("GPOO", {"max_depth": -1}, "max_depth must be a whole number from 0 to 100; given -1"),
    ("StoOO", {"variation": -1.0}, "variation must"),
    ("AVEStoOO", {"error": 0.0}, "error must lie between"),
    ("AVEStoOO", {"reward_range": 0.0}, "reward_range must"),
    ("AVEStoOO", {"rule": "paper"}, r"rule must be one of \['published', 'theory'\]; given 'paper'"),
    ("GPTree", {"scale": 0.0}, "scale must"),
    ("GPTree", {"slope": -0.1}, "slope must"),
    ("GPTree", {"confidence": -1.0}, "confidence must"),
    ("GPTree", {"max_nodes": 0}, "max_nodes must"),
    ("CellGPUCB", {"max_cells": 0}, "max_cells must be a whole number from 1 to 16384; given 0"),
    ("CellGPUCB", {"beta": "none"}, "beta must be one of"),
    ("UCB", {"sets": "minimum"}, r"sets must be one of .*; given 'minimum'; did you mean 'minimal'"),
    ("DCBO", {"joint": "yes"}, "joint"),
    ("FastPKGFN", {"fantasies": 0}, "fantasies must be a whole number from 1 to"),
    ("PKGFN", {"samples": 0}, "samples must be a whole number from 1 to"),
    ("GPUCBRestarted", {"beta": -1.0}, "beta"),
    *(
        ("Auto", {"seconds": seconds}, "seconds, unless it is None, must be a finite number above 0; given ")
        for seconds in (0, -1.0, math.nan, math.inf, "0.1", True)
    ),
    ("Optuna", {"sampler": "tpe"}, r"must be one of .*given 'tpe'; did you mean 'TPE'\?"),
    ("StableBaselines3", {"algorithm": "PP0"}, r"must be one of .*given 'PP0'; did you mean 'PPO'\?"),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "arguments", "message"), ARGUMENTS)
def test_bad_arguments_are_named(agent: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        getattr(agents, agent)(**arguments)


@pytest.mark.parametrize("agent", ["CBO", "CoCaBO", "ABO", "Random"])
def test_before_anything_is_played_nothing_is_recommended(agent: str) -> None:
    made = agent_of(agent)
    made.reset(replace(make(FIRST_OF_MODE[min(made.modes)], 0, 2)[1], initial_data=()), 0)
    with pytest.raises(ArgumentError, match="nothing has been played"):
        made.recommend()
