"""Chemostat against its differential equations, and the script that fits it."""

import math
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import yaml
from scipy.integrate import solve_ivp

from cbo_gym.envs.registry import find_entry
from cbo_gym.problems.systems.chemostat import chemostat, chemostat_days, load_coefficients
from tests.support.examples import load_example
from tests.support.problems import nodes_follow

ENTRY = find_entry("CBO/Chemostat-v0")
COLUMNS = [
    "time (days)",
    " algae (10^6 cells/ml)",
    " rotifers (animals/ml)",
    " egg-ratio",
    " eggs (per ml)",
    " dead animals (per ml)",
    " external medium (mu mol N / l)",
]


@pytest.fixture(scope="module")
def script():
    return load_example("fit_chemostat")


def after_a_day(start: float, loss: float, gain: float) -> float:
    """dx/dt = gain - loss x, integrated numerically."""
    return float(solve_ivp(lambda t, x: gain - loss * x, (0, 1), [start], rtol=1e-10, atol=1e-12).y[0, -1])


def simulate(
    external: float, juveniles: float, adults: float, u: dict[str, float], before: dict[str, float] | None = None
) -> dict[str, float]:
    """One day, each equation integrated with its parents held constant; noise is added to square roots."""
    fitted = load_coefficients()
    s, old = fitted.scales, before or dict(fitted.yesterday)

    def scattered(forecast: float, node: str) -> float:
        return max(math.sqrt(forecast) + u[node], 0.0) ** 2

    def grazed(p: float) -> float:
        return 2.25 * p**1.25 / (15**1.25 + p**1.25)

    day: dict[str, float] = {}
    uptake = s.N * 3.3 / (4.3 + old["N"]) * old["P"]
    day["N"] = scattered(after_a_day(old["N"], 0.55 + uptake, 0.55 * external), "N")
    growth = 3.3 * day["N"] / (4.3 + day["N"])
    day["P"] = scattered(after_a_day(old["P"], s.P.loss * 0.55, s.P.gain * growth), "P")
    food = grazed(day["P"])
    hatching = food * adults * math.exp(-0.55)
    day["J"] = scattered(after_a_day(juveniles, s.J.loss * 0.70, s.J.gain * hatching), "J")
    day["A"] = scattered(after_a_day(adults, s.A.loss * 0.70, s.A.gain * 5 * food * adults), "A")
    laid = food * day["A"] * (1 - math.exp(-0.55))
    day["E"] = scattered(after_a_day(old["E"], s.E.loss * 0.55, s.E.gain * laid), "E")
    deaths = 0.15 * (day["J"] + day["A"])
    day["Y"] = -scattered(after_a_day(old["D"], s.D.loss * 0.55, s.D.gain * deaths), "Y")
    return day


def test_every_node_solves_its_equation() -> None:
    actions = np.random.default_rng(0).random((15, 3))
    actions[:5, 1:] = 0.0

    def by_hand(action: list[float], u: dict[str, float]) -> dict[str, float]:
        return simulate(60 + 40 * action[0], 36 * action[1], 180 * action[2], u)

    nodes_follow(chemostat(), actions, by_hand, rel=1e-7)


def test_every_day_begins_where_the_day_before_ended() -> None:
    actions = np.random.default_rng(0).random((6, 9))
    actions[:3, 1:3] = 0.0

    def by_hand(action: list[float], drawn: dict[str, float]) -> dict[str, float]:
        values, before = {}, None
        for day, (n_in, j, a) in enumerate(np.reshape(action, (3, 3)), start=1):
            u = {"Y" if node == "D" else node: drawn[f"{node}{day}"] for node in "NPJAED"}
            before = simulate(60 + 40 * n_in, 36 * j, 180 * a, u, before)
            before["D"] = -before.pop("Y")
            values |= {f"{node}{day}": value for node, value in before.items()}
        return {**values, "Y": -np.mean([values[f"D{day}"] for day in (1, 2, 3)])}

    nodes_follow(chemostat_days(3), actions, by_hand, rel=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": None}, "field source: "),
        ({"scales": {"N": 1.0}}, r"field scales\.P: Field required"),
        ({"yesterday": {"N_in": 80.0, "N": -1.0}}, r"field yesterday\.N: Input should be greater than 0, given -1.0"),
        ({"noise": {}}, r"field noise\.N: Field required"),
        ({"colour": "blue"}, "field colour: "),
    ],
)
def test_broken_coefficients_are_named(tmp_path: Path, change: dict, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**load_coefficients().model_dump(mode="json"), **change}))
    with pytest.raises(ValueError, match=message):
        chemostat(str(path))
    with pytest.raises(ValueError, match="cannot read the coefficients"):
        chemostat(str(tmp_path / "none.yaml"))


def test_dissolved_nitrogen_follows_its_equation(script) -> None:
    time, algae = np.array([0.0, 0.9, 2.0, 3.1]), np.array([5.0, 30.0, 2.0, 14.0])
    found = script.dissolved_nitrogen(time, algae, np.full(4, 80.0))

    def rate(t: float, n: np.ndarray) -> np.ndarray:
        return 0.55 * (80 - n) - 3.3 * n / (4.3 + n) * np.interp(t, time, algae)

    expected = solve_ivp(rate, (0, 3.1), [80.0], t_eval=time, rtol=1e-9, max_step=0.01).y[0]
    np.testing.assert_allclose(found, expected, rtol=0.01)


def test_the_script_fits_a_table_of_the_data_files_format(
    script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it recovers of a simulated table: deaths depend on quantities that the table holds as they are."""
    script.simulate(tmp_path / "plain.csv", days=200)
    rows = [line.split(",") for line in (tmp_path / "plain.csv").read_text().splitlines()[1:]]
    table = [COLUMNS, *([*row[:3], "0.5", *row[3:]] for row in rows)]  # with the column that is not needed
    (tmp_path / "data.csv").write_text("\n".join(map(",".join, table)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fit_chemostat.py", "data.csv", "--out", "out"])
    script.main()
    assert (tmp_path / "out" / "chemostat.png").stat().st_size > 10_000
    fitted, truth = load_coefficients(tmp_path / "out" / "chemostat.yaml"), load_coefficients()
    assert fitted.scales.D.gain == pytest.approx(truth.scales.D.gain, rel=0.15)
    assert fitted.scales.D.loss == pytest.approx(truth.scales.D.loss, rel=0.15)
    assert fitted.noise.D.stds[0] == pytest.approx(truth.noise.D.stds[0], rel=0.15)
    env = gym.make(ENTRY.id, coefficients=str(tmp_path / "out" / "chemostat.yaml"))
    env.reset(seed=0)
    assert np.isfinite(env.step(env.action_space.sample())[1])


def test_the_script_says_what_is_missing(script, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("time (days),algae (10^6 cells/ml)\n0,1\n")
    with pytest.raises(SystemExit, match=r"has no column \['rotifers', .*it has \['time \(days\)'"):
        script.read_table(tmp_path / "data.csv")
