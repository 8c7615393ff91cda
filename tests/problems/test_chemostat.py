"""Chemostat against its differential equations, and the script that fits it."""

import importlib.util
import math
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import yaml
from scipy.integrate import solve_ivp

from cbo_gym.envs import oracle_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems.systems.chemostat import chemostat, chemostat_days, load_coefficients
from cbo_gym.scm import Intervention
from tests.support.problems import monte_carlo_agrees, nodes_follow

ENTRY = find_entry("CBO/Chemostat-v0")
DAYS = find_entry("CBO/Chemostat-v1")
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
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
    spec = importlib.util.spec_from_file_location("fit_chemostat", EXAMPLES / "fit_chemostat.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    actions = np.random.default_rng(0).random((40, 3))
    actions[:5, 1:] = 0.0

    def by_hand(action: list[float], u: dict[str, float]) -> dict[str, float]:
        return simulate(60 + 40 * action[0], 36 * action[1], 180 * action[2], u)

    nodes_follow(chemostat(), actions, by_hand, rel=1e-7)


def test_the_diagram_is_that_of_the_paper() -> None:
    scm = chemostat().scm
    parents = {node: set(scm.diagram.parents(node)) for node in scm.nodes}
    assert parents == {"N": set(), "P": {"N"}, "J": {"P"}, "A": {"P"}, "E": {"P", "A"}, "Y": {"J", "A"}}
    assert {v.name: v.actions for v in scm.variables if v.actions} == {"N": (0,), "J": (1, 2), "A": (2,)}


def test_the_noise_is_the_fitted_mixture() -> None:
    scm, fitted = chemostat().scm, load_coefficients()
    assert len(scm.noisy) == 6
    for variable in scm.noisy:
        mixture = getattr(fitted.noise, "D" if variable.name == "Y" else variable.name)
        assert variable.noise.means == tuple(mixture.means)
        assert variable.noise.stds == tuple(mixture.stds)
        assert abs(variable.noise.mean) < 0.2 * variable.noise.std
    assert max(len(mixture.weights) for _, mixture in fitted.noise) >= 2


def test_no_intervention_is_the_typical_day() -> None:
    problem, typical = chemostat(), load_coefficients().yesterday
    assert problem.to_native(problem.null_action) == pytest.approx([80.0, typical.J, typical.A])


def test_the_optimum_is_the_edge_without_rotifers_where_nitrogen_does_not_matter() -> None:
    env = gym.make(ENTRY.id).unwrapped
    assert ENTRY.optimum.action[1:] == [0.0, 0.0]
    steps = np.linspace(0.0, 1.0, 6)
    actions = [np.array([n, j, a]) for n in (0.0, 1.0) for j in steps for a in steps]
    estimate = Oracle(env.dynamics).expected_rewards(actions, tolerance=1e-3)
    grid = estimate.value.reshape(2, 6, 6)
    assert np.isfinite(grid).all()
    assert (np.diff(grid, axis=1) < 0).all()  # more juveniles, more deaths
    assert (np.diff(grid, axis=2) < 0).all()  # more adults, more deaths
    assert grid[0, 0, 0] == pytest.approx(grid[1, 0, 0], abs=1e-12)
    assert (grid[0, :, 1:] > grid[1, :, 1:]).all()  # more food, more deaths
    assert grid.max() == pytest.approx(ENTRY.optimum.value, abs=0.01)
    assert ENTRY.optimum.value - ENTRY.optimum.random_value > 2.0


def test_every_day_begins_where_the_day_before_ended() -> None:
    actions = np.random.default_rng(0).random((10, 9))
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


def test_one_day_of_days_is_the_daily_map() -> None:
    one, days = chemostat(), chemostat_days(1)
    actions = Intervention.parameters(one.to_native(np.random.default_rng(1).random((50, 3))))
    noise = one.scm.draw_noise(np.random.default_rng(0), 50)
    np.testing.assert_array_equal(days.scm.propagate(noise, actions)["Y"], one.scm.propagate(noise, actions)["Y"])
    assert days.null_action == one.null_action


def test_the_diagram_of_days_repeats_the_papers() -> None:
    diagram = chemostat_days(2).scm.diagram
    assert {node: set(diagram.parents(f"{node}1")) for node in "NPJAED"} == {
        "N": set(), "P": {"N1"}, "J": {"P1"}, "A": {"P1"}, "E": {"P1", "A1"}, "D": {"J1", "A1"},
    }  # fmt: skip
    assert {node: set(diagram.parents(f"{node}2")) for node in "NPJAED"} == {
        "N": {"N1", "P1"}, "P": {"P1", "N2"}, "J": {"P2"}, "A": {"P2"},
        "E": {"E1", "P2", "A2"}, "D": {"D1", "J2", "A2"},
    }  # fmt: skip
    assert set(diagram.parents("Y")) == {"D1", "D2"}


def test_days_without_rotifers_are_optimal() -> None:
    """Each coordinate by itself, from the optimum and from random actions: fewer animals are better."""
    oracle = oracle_of(gym.make(DAYS.id).unwrapped)
    best = np.array(oracle.optimum.action).reshape(5, 3)
    assert not best[:, 1:].any()
    random = np.random.default_rng(0).random((6, 5, 3))
    fewer = [np.where([False, True, True], 0.5 * one, one) for one in random]
    changes = np.repeat(best.reshape(1, 15), 15, axis=0)
    changes[np.diag_indices(15)] += 0.1
    together = [one.ravel() for one in (best, *random, *fewer, *changes)]  # on the same noise
    values = oracle.expected_rewards(together, tolerance=1e-3).value
    assert (values[7:13] > values[1:7]).all()
    assert (values[1:13] < values[0]).all()
    changed = values[13:].reshape(5, 3)
    np.testing.assert_allclose(changed[:, 0], values[0], atol=1e-12)  # N_in feeds nobody
    assert (changed[:, 1:] < values[0]).all()


@pytest.mark.parametrize(("entry", "separates"), [(ENTRY, False), (DAYS, True)], ids=["v0", "v1"])
def test_a_few_random_actions_are_far_from_the_optimum_in_version_1_alone(entry, separates: bool) -> None:
    """The best of 20, in the mean, as a share of the way from a random action to the optimum."""
    oracle = oracle_of(gym.make(entry.id))
    best, actions = oracle.optimum, np.random.default_rng(3).random((400, len(oracle.problem.null_action)))
    values = oracle.expected_rewards(list(actions), tolerance=0.05).value
    found = values.reshape(20, 20).max(axis=1).mean()
    share = (found - best.random_value) / (best.value - best.random_value)
    assert share < 0.5 if separates else share > 0.8


@pytest.mark.parametrize("entry", [ENTRY, DAYS], ids=lambda entry: entry.id)
def test_plain_monte_carlo_agrees_with_the_oracle(entry) -> None:
    env = gym.make(entry.id).unwrapped
    dim = len(env.problem.null_action)
    actions = [np.array(oracle_of(env).optimum.action), *np.random.default_rng(0).random((3, dim))]
    monte_carlo_agrees(env, actions)


def test_the_recorded_errors_are_as_stated_in_the_readme() -> None:
    """Better than "as yesterday" for all but the eggs on the days that were held out."""
    fitted = load_coefficients()
    worse = [node for node, errors in fitted.errors.items() if errors["forecast"] > errors["persistence"]]
    assert worse == ["E"]
    assert fitted.pairs["held_out"] >= 50
    assert fitted.held_out_days[0] >= fitted.training_days[1]
    assert "10.6084/m9.figshare.10045976" in fitted.source


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


def test_missing_coefficients(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read the coefficients"):
        chemostat(str(tmp_path / "none.yaml"))


def random_days(script, count: int = 150) -> tuple[dict, dict]:
    """Yesterdays drawn at random and noiseless todays of the recorded map."""
    rng, fitted = np.random.default_rng(1), load_coefficients()
    old = {node: getattr(fitted.yesterday, node) * rng.uniform(0.2, 3.0, count) for node in script.NODES}
    new = {"N_in": rng.uniform(60.0, 100.0, count)}
    s = fitted.scales
    for node in script.NODES:
        factors = (s.N,) if node == "N" else (getattr(s, node).gain, getattr(s, node).loss)
        new[node] = script.MECHANISMS[node](factors, old, new)
    return old, new


@pytest.mark.slow
def test_the_fit_recovers_the_factors_behind_noiseless_days(script) -> None:
    fitted = script.as_scales(script.fit_factors(*random_days(script)))
    for node, rates in load_coefficients().scales:
        found = getattr(fitted, node)
        if node == "N":
            assert found == pytest.approx(rates, rel=1e-3)
        else:
            assert (found.gain, found.loss) == pytest.approx((rates.gain, rates.loss), rel=1e-3)


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
