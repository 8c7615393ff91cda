"""The systems with slices, against plain NumPy written down from the papers' equations, loops and all."""

import numpy as np
import pytest

from cbo_gym.envs import CausalBanditEnv
from cbo_gym.envs.registry import entries
from cbo_gym.problems import Slices, build_problem
from cbo_gym.scm import Intervention

ENTRIES = [entry for entry in entries() if entry.mode == "dynamic"]
COUNT = 4


def hills(x, z):
    return -2 * np.exp(-((x - 1) ** 2) - (z - 1) ** 2) - np.exp(-((x + 1) ** 2) - z**2)


def stat(t, e, now, before):
    now["X"] = e["X"] if t == 0 else before["X"] + e["X"]
    now["Z"] = np.exp(-now["X"]) + e["Z"] + (before["Z"] if t else 0)
    now["Y"] = np.cos(now["Z"]) - np.exp(-now["Z"] / 20) + e["Y"] + (before["Y"] if t else 0)


def ind(t, e, now, before):
    for name in "XZ":
        now[name] = e[name] - (before[name] if t else 0)
    now["Y"] = hills(now["X"], now["Z"]) + e["Y"] + (before["Y"] if t else 0)


def multiv(t, e, now, before):
    now["X"] = e["X"] - (before["X"] if t else 0)
    now["W"] = e["W"]
    now["Z"] = np.sin(now["W"]) + e["Z"] - (before["Z"] if t else 0)
    wave = np.cos(now["Z"] * before["Y"]) - before["Y"] if t else np.cos(now["Z"])
    now["Y"] = hills(now["X"], now["Z"]) + wave + e["Y"]


def nonstat(t, e, now, before):
    now["X"] = e["X"] + (before["X"] if t else 0)
    if t == 0:
        now["Z"] = now["X"] + e["Z"]
        now["Y"] = np.sqrt(abs(36 - (now["Z"] - 1) ** 2)) + 1 + e["Y"]
    elif t == 1:
        now["Z"] = -now["X"] * before["X"] / (before["X"] ** 2 + 0.01) + before["Z"] + e["Z"]
        now["Y"] = now["Z"] * np.cos(np.pi * now["Z"]) - before["Y"] + e["Y"]
    else:
        now["Z"] = now["X"] + before["Z"] + e["Z"]
        now["Y"] = abs(now["Z"]) - before["Y"] - before["Z"] + e["Y"]


SIMULATED = {"Stat": stat, "Miss": stat, "Noisy": stat, "Ind": ind, "Multiv": multiv, "NonStat": nonstat}


@pytest.mark.parametrize("name", SIMULATED)
def test_mechanisms_are_those_of_the_paper(name: str) -> None:
    """With the signs of what is minimised there, and of its noise, turned round."""
    entry = next(entry for entry in ENTRIES if entry.id == f"CBO/DCBO{name}-v0")
    problem = build_problem(entry.problem, slices=COUNT, trial_noise=1.0)
    scm, names = problem.scm, problem.data(Slices).names
    rng = np.random.default_rng(0)
    noise = scm.draw_noise(rng, 50)
    drawn = {v.name: column for v, column in zip(scm.noisy, noise, strict=True)}
    some = names[1]
    held = rng.normal(size=50)
    values = scm.propagate(noise, Intervention.do({f"{some}_1": held}))
    before: dict[str, np.ndarray] = {}
    for t in range(COUNT):
        now: dict[str, np.ndarray] = {}
        SIMULATED[name](t, {n: drawn[f"{n}_{t}"] for n in names}, now, before)
        if t == 1:  # what is set is set before its effects are computed
            e = {n: drawn[f"{n}_{t}"] for n in names}
            e[some] = e[some] + held - now[some]
            now = {}
            SIMULATED[name](t, e, now, before)
        for variable in names[:-1]:
            np.testing.assert_allclose(values[f"{variable}_{t}"], now[variable], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(values[f"Y_{t}"], -now["Y"], rtol=1e-9, atol=1e-9)
        before = now


def test_the_chemostat_follows_its_equations_from_day_to_day() -> None:
    env = CausalBanditEnv("cbo_gym.problems.systems.dynamic:ode", mode="dynamic", trials=1)
    env.reset(seed=0)
    nothing = {"target": 0, "values": np.full(3, 0.5)}

    def eaten(p):
        return 2.25 * p**1.25 / (15**1.25 + p**1.25)

    state = {"N": 41.3, "P": 2.71605, "J": 1.23036, "A": 6.15179, "E": 0.171, "D": 0.0}
    for day in range(3):
        reward = env.step(nothing)[1]
        now = {
            "N": max(
                0.0, 0.55 * 80 - 3.3 * state["N"] / (4.3 + state["N"]) * state["P"] - (0.55 * state["N"] if day else 0)
            )
        }
        now["P"] = 3.3 * now["N"] / (4.3 + now["N"]) * state["P"]
        food = now["P"] if day == 0 else state["P"]
        born = eaten(food) * state["A"] * np.exp(-0.55)
        now["J"] = max(0.0, born - 0.7 * state["J"])
        now["A"] = max(0.0, 5 * born - 0.7 * state["A"])
        now["D"] = 0.15 * (now["J"] + now["A"]) - 0.55 * state["D"]
        for name in "NPJA":
            assert env.values[f"{name}_{day}"] == pytest.approx(now[name], rel=1e-9)
        assert reward == pytest.approx(-now["D"], rel=1e-9)
        state |= now


def test_in_the_economy_taxes_slow_the_growth_to_come() -> None:
    env = CausalBanditEnv("cbo_gym.problems.systems.dynamic:economy", mode="dynamic", trials=1)
    growth = []
    for tax in (0.0, 1.0):
        env.reset(seed=0)
        env.step({"target": 1, "values": np.array([tax, 0.5])})
        env.step({"target": 0, "values": np.full(2, 0.5)})
        growth.append(env.values["G_1"])
    assert growth[0] - growth[1] == pytest.approx(0.1 * 30.0)
