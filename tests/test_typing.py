"""Lazy imports: what type checkers see of them, and that every list of their names is the same."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import cbo_gym
from cbo_gym import agents
from cbo_gym.agent_registry.cards import cards_json
from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.agent_registry.zoo import DISTRIBUTION, GROUP, zoo

ROOT = Path(cbo_gym.__file__).parent.parent
RETURNS = {
    "evaluate": "Run",
    "sweep": "dict[str, int]",
    "leaderboard": "Leaderboard",
    "custom_problem": "Problem",
    "load_problem": "Problem",
    "make_task": "Task",
    "sample": "Any",  # Polars' types are skipped below
    "optuna_objective": "OptunaObjective",
    "botorch_function": "CausalTestFunction",
}
USER = """
import cbo_gym
from cbo_gym import {names}
from cbo_gym.agents import {agents}
from cbo_gym.evaluation import leaderboard as same_leaderboard, sweep as same_sweep

reveal_type(cbo_gym.sweep)
{reveals}
cbo_gym.evalute  # type: ignore[attr-defined]
from cbo_gym.agents import NoSuchAgent  # type: ignore[attr-defined]
"""


def check_types(folder, python=sys.executable, path=""):
    """Run mypy on a script of a user who has cbo-gym in ``python``'s site-packages, or else under ``path``."""
    names = sorted(set(cbo_gym.__all__) - {"__version__"})
    asked = [*names, *agents.__all__, "same_leaderboard", "same_sweep"]
    reveals = "\n".join(f"reveal_type({name})" for name in asked)
    script = folder / "script.py"
    script.write_text(USER.format(names=", ".join(names), agents=", ".join(agents.__all__), reveals=reveals))
    config = folder / "mypy.ini"  # large libraries take long, and no type that is asked for here is theirs
    large = ["torch", "botorch", "numpy", "scipy", "sklearn", "polars", "matplotlib", "networkx", "pydantic", "optuna"]
    skipped = f"[mypy-{','.join(f'{name}.*' for name in large)}]\nfollow_imports = skip\n"
    config.write_text(f"[mypy]\nstrict = true\nfollow_imports = silent\n{skipped}")
    mypy = [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", folder / "cache"]
    done = subprocess.run(
        [*mypy, "--python-executable", python, script.name],
        cwd=folder,
        env={"MYPYPATH": str(path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    types = dict(zip(["cbo_gym.sweep", *asked], revealed, strict=True))
    assert [name for name, text in types.items() if text == "Any"] == []
    for name, text in types.items():
        expected = RETURNS.get(name.removeprefix("same_").removeprefix("cbo_gym."), name)
        assert re.search(rf"\b{re.escape(expected)}\]?$", text.rpartition("-> ")[2]), f"{name}: {text}"


@pytest.mark.slow
def test_type_checkers_see_what_lazy_imports_give(tmp_path):
    check_types(tmp_path, path=ROOT)


def test_every_lazy_name_is_there():
    for name in cbo_gym.__all__:
        assert getattr(cbo_gym, name) is not None
    assert set(cbo_gym.__all__) <= set(dir(cbo_gym))
    with pytest.raises(AttributeError, match="evalute"):
        cbo_gym.evalute  # noqa: B018


def test_every_list_of_the_zoo_has_the_same_agents():
    published = {path.rpartition(":")[2]: path for path in zoo().values()}
    assert set(agents.__all__) == {*published, "AskTell", "GPNetworkModel"}
    assert set(agents.__all__) <= set(dir(agents))
    for name in agents.__all__:
        found = getattr(agents, name)
        assert published.get(name, f"{found.__module__}:{name}") == f"{found.__module__}:{found.__name__}"
    assert set(zoo()) <= set(known_agents())
    with pytest.raises(AttributeError, match="no attribute 'MCBOO'; it has ABO, "):
        agents.MCBOO  # noqa: B018


def test_the_zoos_cards_are_up_to_date():
    assert Path(agents.__file__).with_name("cards.json").read_text() == cards_json(), "run 'make zoo'"


def test_the_installation_has_the_same_agents():
    try:
        points = distribution(DISTRIBUTION).entry_points.select(group=GROUP)
    except PackageNotFoundError:
        pytest.skip("cbo-gym is not installed")
    installation = {point.name: point.value for point in points}
    assert installation == zoo(), "pyproject.toml changed: run 'make install'"
