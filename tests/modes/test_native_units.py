"""Interventions are described by the parameters' own names and units, if they have any."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

from cbo_gym import load_problem, make_task
from cbo_gym.cli import app
from cbo_gym.envs import oracle_of
from cbo_gym.envs.wrappers import FlattenAction
from cbo_gym.modes import make_dynamics
from cbo_gym.problems import Contexts, Problem
from cbo_gym.problems.systems.contextual import contextual_network
from cbo_gym.problems.systems.function_networks import dropwave
from cbo_gym.testing import check_problem
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
# Mode -> an action, its description, its record and its string.
CASES: dict[str, tuple[Any, dict[str, Any], Any, str]] = {
    "soft": (
        np.array([0.6, 0.5]),
        {"heat": 22.0, "price": 4.0},
        {"heat": 22.0, "price": 4.0},
        "heat = 22, price = 4, which is the action [0.6, 0.5]",
    ),
    "hard": (
        {"target": 2, "values": np.array([0.5, 0.75])},
        {"Growth": 1.5},
        {"Growth": 1.5},
        "do(Growth = 1.5)",
    ),
    "aggregated": (
        np.array([[0.0, 0.5], [0.5, 1.0]]),
        {"heat": (10.0, 20.0), "price": (4.0, 8.0)},
        [0.0, 0.5, 0.5, 1.0],
        "heat in [10, 20], price in [4, 8], which is the cell [0, 0.5, 0.5, 1]",
    ),
    "masked": (
        np.array([1, 0]),
        {"heat": 1, "price": 0},
        [1.0, 0.0],
        "the super arm {heat}, which is the action [1, 0]",
    ),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file in which two mechanisms take the heat."""
    file = tmp_path_factory.mktemp("problems") / "greenhouse.yaml"
    file.write_text(GREENHOUSE)
    return str(file)


def made(mode: str, problem: Any, **keywords: Any) -> gym.Env[Any, Any]:
    env_id = "CBO/Custom-v0" if mode == "soft" else f"CBO/Custom-{mode.capitalize()}-v0"
    return reset(gym.make(env_id, problem=problem, **keywords))


@pytest.mark.parametrize("mode", CASES)
def test_an_action_is_described_recorded_and_shown_in_native_units(mode: str, path: str) -> None:
    action, described, record, string = CASES[mode]
    env = made(mode, path)
    found = env.step(action)[-1]["intervention"]
    assert found == described
    assert list(found) == list(described)
    codec = env.unwrapped.dynamics.codec  # type: ignore[attr-defined]
    assert codec.to_record(action) == record
    assert codec.to_string(record) == string
    restored = codec.from_record(record)
    assert env.step(restored)[-1]["intervention"] == described
    if mode != "hard":
        np.testing.assert_array_equal(restored, action)
        check_problem(load_problem(path), mode=mode)


def test_limits_wrappers_and_empty_sets_are_described_in_native_units(path: str) -> None:
    found = made("soft", path, max_interventions=1).step(np.array([0.0, 0.25]))[-1]["intervention"]
    assert found == {"heat": 10.0, "price": 2.0}
    assert [type(value) for value in found.values()] == [float, float]
    flat = FlattenAction(made("aggregated", path))
    assert flat.step(np.array([0.5, 0.5, 0.0, 1.0]))[-1]["intervention"] == CASES["aggregated"][1]
    hard = make_dynamics(path, "hard").codec
    assert hard.to_record({"target": 0, "values": np.array([0.5, 0.75])}) == {}


def test_a_task_has_names_and_domains(path: str) -> None:
    for mode in ("soft", "aggregated", "masked"):
        task: Any = make_task(made(mode, path), seed=0)
        native = [(0.0, 1.0)] * 2 if mode == "masked" else [(10.0, 30.0), (0.0, 8.0)]
        assert (task.action_names, list(task.action_domains)) == (("heat", "price"), native)
        assert task.codec.domains.names == ("heat", "price")
        if mode != "masked":
            assert task.action_nodes == {"Growth": (0,), "Bill": (0,), "Yield": (1,)}
    task = make_task(gym.make("CBO/Dropwave-v0"), seed=0)
    assert task.action_names == ("a0", "a1")
    assert not task.codec.domains.named


@pytest.mark.parametrize(
    ("mode", "record", "message"),
    [
        ("soft", {"heat": 22.0}, r"give one value for each of \['heat', 'price'\]; given \['heat'\]"),
        ("soft", {"heat": 22.0, "price": 4.0, "Light": 0.5}, r"given \['heat', 'price', 'Light'\]"),
        ("hard", {"Grwth": 1.0}, r"'Grwth' is not one of \['Light', 'Growth'\]; did you mean 'Growth'\?"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(mode: str, record: dict[str, float], message: str, path: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_dynamics(path, mode).codec.from_record(record)


def test_the_record_of_an_optimum_leads_back_to_it(path: str) -> None:
    oracle = oracle_of(made("soft", path))
    codec, best = oracle.dynamics.codec, oracle.optimum
    record = codec.to_record(best.action)
    np.testing.assert_allclose(codec.from_record(record), best.action, rtol=0, atol=1e-15)
    # E[Light] is 1/2: at most price / 2 - price^2 / 10, so 5/8, less the bill of a heat near 22.
    assert record == {"heat": pytest.approx(21.5, abs=1.0), "price": pytest.approx(2.5, abs=0.5)}


def shown(env: str) -> str:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["show", env])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_the_command_show_prints_native_units(path: str) -> None:
    soft = shown(f"CBO/Custom-v0(problem={path!r})")
    for part in ("heat 10 to 30", "price 0 to 8", "reached at heat = 2", ", price = 2."):
        assert part in soft
    for part in ("Growth <- Light, heat", "Bill <- heat", "Yield <- Growth, Bill, price reward"):
        assert part in soft
    masked = shown(f"CBO/Custom-Masked-v0(problem={path!r})")
    assert "reached at the super arm {" in masked
    assert "Growth <- Light, heat" in masked
    hard = shown(f"CBO/Custom-Hard-v0(problem={path!r})")
    for part in ("do(Light) 0 to 1", "do(Growth) 0 to 2", "reached at do("):
        assert part in hard
    built_in = shown("CBO/Dropwave-v0")
    for part in ("action[0] -5.12 to 5.12", "X0 <- action[0], action[1]", "reached at a0 = 0, a1 = 0, which is"):
        assert part in built_in


def test_a_contextual_network_keeps_the_names_of_its_parameters(path: str) -> None:
    problem = contextual_network(path, contexts=[0])
    env = made("contextual", problem)
    dynamics: Any = env.unwrapped.dynamics  # type: ignore[attr-defined]
    assert dynamics.contexts.names == ("heat",)
    assert dynamics.problem.manipulable == {"price": (0.0, 8.0)}
    assert set(dynamics.scm.nodes) == {"heat", "price", "Light", "Growth", "Bill", "Yield"}
    assert dynamics.codec.choices == ("{price | heat}", "{}")
    action = {"scope": 0, "values": np.array([0.5])}
    assert dynamics.codec.to_record(action) == {"price": 4.0}
    assert dynamics.codec.to_string({"price": 4.0}) == "do(price = 4)"
    context = env.reset(seed=0)[0]["context"]
    assert 10.0 < context[0] < 30.0
    observation, *_, info = env.step(action)
    values = dict(zip(dynamics.scm.nodes, observation["nodes"], strict=True))
    assert (values["heat"], values["price"]) == (context[0], 4.0)
    assert values["Bill"] == pytest.approx(0.001 * (context[0] - 10) ** 2)
    assert info["intervention"] == {"price": 4.0}
    unnamed = contextual_network("cbo_gym.problems.systems.function_networks:dropwave", contexts=[1])
    assert (contexts := unnamed.data(Contexts)) is not None
    assert (contexts.names, list(unnamed.manipulable)) == (("A1",), ["A0"])


def test_names_must_be_different_and_as_many_as_coordinates() -> None:
    base = dropwave()
    fields = {"name": "D", "scm": base.scm, "description": "", "citation": "", "action_domains": base.action_domains}
    for names in (("x",), ("x", "x"), ("x", "y", "z")):
        with pytest.raises(ValueError, match="action_names needs 2 different names or none; given"):
            Problem(**fields, action_names=names)  # type: ignore[arg-type]
    dynamics = make_dynamics(Problem(**fields, action_names=("x", "y")), "soft")  # type: ignore[arg-type]
    assert dynamics.domains.named
    assert dynamics.describe(dynamics.decode(np.array([0.0, 0.5]))) == {"x": -5.12, "y": 0.0}
