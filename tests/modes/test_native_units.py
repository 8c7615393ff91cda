"""Interventions are described by the parameters' own names and units, if they have any."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

from cbo_gym import custom_problem, load_problem, make_task
from cbo_gym.cli import app
from cbo_gym.envs import oracle_of
from cbo_gym.envs.wrappers import FlattenAction
from cbo_gym.modes import make_dynamics
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.problems import Contexts, Problem
from cbo_gym.problems.systems.contextual import contextual_network
from cbo_gym.problems.systems.function_networks import dropwave, rosenbrock
from tests.support.loop import reset

GREENHOUSE = """
name: Greenhouse
reward: Yield
variables:
  Light: {equation: u, noise: {Uniform: [0, 1]}}
  Growth: {equation: "Light * exp(-(heat - 22)**2 / 50) + u", noise: 0.1}
  Bill: 0.001 * (heat - 10)**2
  Yield: Growth * price - 0.1 * price**2 - Bill
actions: {heat: [10, 30], price: [0, 8]}
manipulable: {Light: [0, 1], Growth: [0, 2]}
"""
MODES = ("soft", "aggregated", "masked")
ACTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "soft": (np.array([0.6, 0.5]), {"heat": 22.0, "price": 4.0}),
    "aggregated": (np.array([[0.0, 0.5], [0.5, 1.0]]), {"heat": (10.0, 20.0), "price": (4.0, 8.0)}),
    "masked": (np.array([1, 0]), {"heat": 1, "price": 0}),
}
every_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file in which two mechanisms take the heat."""
    file = tmp_path / "greenhouse.yaml"
    file.write_text(GREENHOUSE)
    return str(file)


def by_functions() -> Problem:
    return custom_problem(
        {
            "Growth": lambda heat, u: np.exp(-((heat - 22) ** 2) / 50) + u,
            "Bill": lambda heat, water: 0.001 * heat * water,
            "Yield": lambda Growth, Bill, price: Growth * price - 0.1 * price**2 - Bill,  # noqa: N803
        },
        reward="Yield",
        noise={"Growth": 0.1},
        actions={"heat": (10.0, 30.0), "price": (0.0, 8.0), "water": (-1.0, 1.0)},
    )


def made(mode: str, problem: Any, **keywords: Any) -> gym.Env[Any, Any]:
    env_id = "CBO/Custom-v0" if mode == "soft" else f"CBO/Custom-{mode.capitalize()}-v0"
    return gym.make(env_id, problem=problem, **keywords)


@every_mode
@pytest.mark.parametrize("loaded", [False, True], ids=["path", "problem"])
def test_info_tells_parameters_by_name_in_native_units(mode: str, loaded: bool, path: str) -> None:
    action, expected = ACTIONS[mode]
    env = reset(
        made(mode, load_problem(path) if loaded else path, **({"super_arm_size": 2} if mode == "masked" else {}))
    )
    told = env.step(action)[-1]["intervention"]
    assert told == expected
    assert list(told) == ["heat", "price"]
    if mode == "soft":
        assert [type(value) for value in told.values()] == [float, float]
    dynamics = env.unwrapped.dynamics  # type: ignore[attr-defined]
    assert dynamics.describe(dynamics.decode(action)) == expected


def test_descriptions_hold_the_values_that_mechanisms_take(path: str) -> None:
    """The bill is computed from the heat alone, the growth without noise from it and the light."""
    env = reset(made("soft", path).unwrapped, 0, 0)
    for _ in range(20):
        told = env.step(env.action_space.sample())[-1]["intervention"]
        values = env.values  # type: ignore[attr-defined]
        assert values["Bill"] == pytest.approx(0.001 * (told["heat"] - 10) ** 2)
        expected = values["Growth"] * told["price"] - 0.1 * told["price"] ** 2 - values["Bill"]
        assert values["Yield"] == pytest.approx(expected)


@every_mode
@pytest.mark.parametrize("functions", [False, True], ids=["file", "functions"])
def test_the_vector_environment_tells_the_same(mode: str, functions: bool, path: str) -> None:
    problem = by_functions() if functions else path
    env_id = "CBO/Custom-v0" if mode == "soft" else f"CBO/Custom-{mode.capitalize()}-v0"
    ours = gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point", problem=problem)
    names = ["heat", "price", "water"] if functions else ["heat", "price"]
    singles = [made(mode, problem) for _ in range(3)]
    ours.reset(seed=4)
    for i, one in enumerate(singles):
        one.reset(seed=4 + i)
    ours.action_space.seed(0)
    for _ in range(3):
        actions = ours.action_space.sample()
        described = ours.step(actions)[-1]["intervention"]
        assert list(described) == [key for name in names for key in (name, f"_{name}")]
        for i, one in enumerate(singles):
            alone = one.step(actions[i])[-1]["intervention"]
            assert list(alone) == names
            for name in names:
                np.testing.assert_allclose(described[name][i], alone[name], rtol=1e-15)
                assert described[f"_{name}"].all()
    if mode == "aggregated":
        assert described["heat"].shape == (3, 2)


@pytest.mark.parametrize(
    ("mode", "keywords", "action", "expected"),
    [
        ("soft", {"max_interventions": 1}, np.array([0.0, 0.25]), {"heat": 10.0, "price": 2.0}),
        ("hard", {}, {"target": 2, "values": np.array([0.5, 0.75])}, {"Growth": 1.5}),
        ("aggregated", {}, np.array([0.5, 0.5, 0.0, 1.0]), {"heat": (10.0, 20.0), "price": (4.0, 8.0)}),
    ],
)
def test_limits_targets_and_wrappers_tell_native_units(mode: str, keywords, action, expected, path: str) -> None:
    env = made(mode, path, **keywords)
    env = reset(FlattenAction(env) if mode == "aggregated" else env)
    assert env.step(action)[-1]["intervention"] == expected


def test_built_in_problems_without_names_are_described_by_node() -> None:
    """Rosenbrock's inner parameters enter two mechanisms each."""
    soft = make_dynamics(rosenbrock(), "soft")
    told = soft.describe(soft.decode(np.array([0.0, 0.25, 0.5, 0.75, 1.0])))
    assert told == {"X0": (-2.0, -1.0), "X1": (-1.0, 0.0), "X2": (0.0, 1.0), "Y": (1.0, 2.0)}
    cells = make_dynamics(dropwave(), "aggregated")
    told = cells.describe(cells.decode(np.array([[0.0, 0.25], [0.5, 1.0]])))
    assert told == {"X0": ((-5.12, 0.0), (-2.56, 5.12))}
    arms = make_dynamics(dropwave(), "masked")
    assert arms.describe(arms.decode(np.array([0, 1]))) == {"z0": 0, "z1": 1}


def test_the_task_tells_names_and_domains(path: str) -> None:
    for mode in MODES:
        task: Any = make_task(made(mode, path), seed=0)
        assert task.action_names == ("heat", "price")
        native = [(0.0, 1.0)] * 2 if mode == "masked" else [(10.0, 30.0), (0.0, 8.0)]
        assert list(task.action_domains) == native
        assert task.codec.domains.names == ("heat", "price")
        if mode != "masked":
            assert task.action_nodes == {"Growth": (0,), "Bill": (0,), "Yield": (1,)}
    task = make_task(gym.make("CBO/Dropwave-v0"), seed=0)
    assert task.action_names == ("a0", "a1")
    assert not task.codec.domains.named


RECORDS: dict[str, tuple[Any, str]] = {
    "soft": ({"heat": 22.0, "price": 4.0}, "heat = 22, price = 4, which is the action [0.6, 0.5]"),
    "aggregated": (
        [0.0, 0.5, 0.5, 1.0],
        "heat in [10, 20], price in [4, 8], which is the cell [0, 0.5, 0.5, 1]",
    ),
    "masked": ([1.0, 0.0], "the super arm {heat}, which is the action [1, 0]"),
}


@every_mode
def test_records_and_words(mode: str, path: str) -> None:
    codec = make_dynamics(path, mode).codec
    action, _ = ACTIONS[mode]
    record, words = RECORDS[mode]
    assert codec.to_record(action) == record
    assert codec.to_string(record) == words
    np.testing.assert_array_equal(codec.from_record(record), action)


def test_records_without_names_and_of_choices(path: str) -> None:
    soft = make_dynamics(dropwave(), "soft").codec
    assert soft.to_record(np.array([0.5, 0.25])) == [0.5, 0.25]
    assert soft.to_string([0.5, 0.25]) == "a0 = 0, a1 = -2.56, which is the action [0.5, 0.25]"
    arms = make_dynamics(dropwave(), "masked").codec
    assert arms.to_string([0.0, 1.0]) == "the super arm {z1}, which is the action [0, 1]"
    hard = make_dynamics(path, "hard").codec
    assert hard.to_record({"target": 2, "values": np.array([0.5, 0.75])}) == {"Growth": 1.5}
    assert hard.to_string({"Growth": 1.5}) == "do(Growth = 1.5)"
    assert hard.to_record({"target": 0, "values": np.array([0.5, 0.75])}) == {}


@pytest.mark.parametrize(
    ("mode", "record", "message"),
    [
        ("soft", {"heat": 22.0}, r"give one value for each of \['heat', 'price'\]; given \['heat'\]"),
        ("soft", {"heat": 22.0, "prize": 4.0}, r"given \['heat', 'prize'\]"),
        ("soft", {"heat": 22.0, "price": 4.0, "Light": 0.5}, r"given \['heat', 'price', 'Light'\]"),
        ("hard", {"Grwth": 1.0}, r"'Grwth' is not one of \['Light', 'Growth'\]; did you mean 'Growth'\?"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(mode: str, record: dict[str, float], message: str, path: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_dynamics(path, mode).codec.from_record(record)


def same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, str):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)


def sampled(dynamics: Dynamics, count: int) -> list[Any]:
    dynamics.action_space.seed(0)
    return [dynamics.action_space.sample() for _ in range(count)]


@pytest.mark.parametrize("mode", [*MODES, "hard"])
def test_records_lead_back_to_their_actions(mode: str, path: str) -> None:
    for problem in (path, by_functions()) if mode != "hard" else (path,):
        dynamics = make_dynamics(problem, mode)
        codec = dynamics.codec
        for action in sampled(dynamics, 100):
            back = codec.from_record(codec.to_record(action))
            assert back in dynamics.action_space
            if mode == "hard":  # values without effect are not recorded
                described = [dynamics.describe(dynamics.decode(one)) for one in (back, action)]
                same(*described)
                assert back["target"] == action["target"]
            else:
                same(back, action)
                assert codec.to_string(codec.to_record(back)) == codec.to_string(codec.to_record(action))


@pytest.mark.parametrize("mode", [*MODES, "hard"])
def test_the_record_of_an_optimum_leads_back_to_it(mode: str, path: str) -> None:
    oracle = oracle_of(made(mode, path))
    best = oracle.optimum
    codec = oracle.dynamics.codec
    back = codec.from_record(codec.to_record(best.action))
    assert back in oracle.dynamics.action_space
    same(
        oracle.dynamics.describe(oracle.dynamics.decode(back)),
        oracle.dynamics.describe(oracle.dynamics.decode(best.action)),
    )
    values = oracle.expected_rewards([back, best.action], tolerance=np.inf).value
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    if mode == "soft":
        same(back, best.action)
        # E[Light] is 1/2: at most price / 2 - price^2 / 10, so 5/8, less the bill of a heat near 22
        assert codec.to_record(best.action)["price"] == pytest.approx(2.5, abs=0.5)
        assert codec.to_record(best.action)["heat"] == pytest.approx(21.5, abs=1.0)


def shown(env: str) -> str:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["show", env])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_show_speaks_native_units(path: str) -> None:
    soft = shown(f"CBO/Custom-v0(problem={path!r})")
    for part in ("heat 10 to 30", "price 0 to 8", "reached at heat = 2", ", price = 2."):
        assert part in soft
    for part in ("Growth <- Light, heat", "Bill <- heat", "Yield <- Growth, Bill, price reward"):
        assert part in soft
    for mode in ("Aggregated", "Masked"):
        words = shown(f"CBO/Custom-{mode}-v0(problem={path!r})")
        oracle = oracle_of(made(mode.lower(), path))
        codec = oracle.dynamics.codec
        assert f"reached at {codec.to_string(codec.to_record(oracle.optimum.action))} random action" in words
        assert "Growth <- Light, heat" in words
    hard = shown(f"CBO/Custom-Hard-v0(problem={path!r})")
    for part in ("do(Light) 0 to 1", "do(Growth) 0 to 2", "reached at do("):
        assert part in hard
    built_in = shown("CBO/Dropwave-v0")
    for part in ("action[0] -5.12 to 5.12", "X0 <- action[0], action[1]", "reached at a0 = 0, a1 = 0, which is"):
        assert part in built_in


def test_a_contextual_network_keeps_the_names_of_its_parameters(path: str) -> None:
    problem = contextual_network(path, contexts=[0])
    dynamics: Any = make_dynamics(problem, "contextual")
    assert dynamics.contexts.names == ("heat",)
    assert dynamics.problem.manipulable == {"price": (0.0, 8.0)}
    assert set(dynamics.scm.nodes) == {"heat", "price", "Light", "Growth", "Bill", "Yield"}
    assert dynamics.codec.choices == ("{price | heat}", "{}")
    assert dynamics.describe(dynamics.decode({"scope": 0, "values": np.array([0.5])})) == {"price": 4.0}
    assert dynamics.codec.to_record({"scope": 0, "values": np.array([0.5])}) == {"price": 4.0}
    assert dynamics.codec.to_string({"price": 4.0}) == "do(price = 4)"
    env = made("contextual", problem)
    context = env.reset(seed=0)[0]["context"]
    assert 10.0 < context[0] < 30.0
    observation, *_, info = env.step({"scope": 0, "values": np.array([0.5])})
    values = dict(zip(dynamics.scm.nodes, observation["nodes"], strict=True))
    assert (values["heat"], values["price"]) == (context[0], 4.0)
    assert values["Bill"] == pytest.approx(0.001 * (context[0] - 10) ** 2)
    assert info["intervention"] == {"price": 4.0}
    unnamed = contextual_network("cbo_gym.problems.systems.function_networks:dropwave", contexts=[1])
    assert (told := unnamed.data(Contexts)) is not None
    assert (told.names, list(unnamed.manipulable)) == (("A1",), ["A0"])


def test_names_must_be_different_and_as_many_as_coordinates() -> None:
    base = dropwave()
    fields = {"name": "D", "scm": base.scm, "description": "", "citation": "", "action_domains": base.action_domains}
    for names in (("x",), ("x", "x"), ("x", "y", "z")):
        with pytest.raises(ValueError, match="action_names needs 2 different names or none; given"):
            Problem(**fields, action_names=names)  # type: ignore[arg-type]
    named = Problem(**fields, action_names=("x", "y"))  # type: ignore[arg-type]
    assert named.domains.names == ("x", "y")
    assert named.domains.named
    dynamics = make_dynamics(named, "soft")
    assert dynamics.describe(dynamics.decode(np.array([0.0, 0.5]))) == {"x": -5.12, "y": 0.0}


def test_a_picture_and_a_table_name_the_parameters(path: str) -> None:
    env = reset(made("soft", path, render_mode="ansi"))
    env.step(np.array([0.6, 0.5]))
    rows = {line.split()[0]: line.split() for line in str(env.render()).splitlines() if line.strip()}
    assert rows["Growth"][2] == rows["Bill"][2] == "heat"
    assert rows["Yield"][2] == "price"
    pictured = reset(made("soft", path, render_mode="rgb_array"))
    pictured.step(np.array([0.6, 0.5]))
    assert isinstance(pictured.render(), np.ndarray)
