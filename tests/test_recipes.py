"""The recipes of the guide: their files in a copy of the package, played."""

import re
import subprocess
import sys
from pathlib import Path
from shutil import copyfile, copytree

import pytest

import cbo_gym

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r'```\w+ title="([^"]+)"\n(.*?)```', flags=re.DOTALL)
APPENDED = {"agents/__init__.pyi", "envs_registry.yaml", "cbo_gym/evaluation/metrics/registry.py"}
INSERTED = {  # where a line goes into a file that is there already
    "pyproject.toml": '[project.entry-points."cbo_gym.agents"]\n',
    "cbo_gym/task.py": '    MASKED = "masked"\n',
}
ENVIRONMENT = """
import gymnasium as gym, cbo_gym
from cbo_gym.envs import oracle_of
from cbo_gym.testing import check_problem
check_problem("cbo_gym.problems.systems.thermostat:thermostat")
env = gym.make("CBO/Thermostat-v0")
env.reset(seed=0)
*_, info = env.step([0.5, 0.0])
assert info["intervention"] == {"heat": 5.0, "blind": 0.0}, info
assert abs(oracle_of(env).find_optimum().value + 0.25) < 1e-3  # the variance of the warmth
"""
AGENT = """
import cbo_gym
from cbo_gym.agents import Halving
from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.cli import app
from cbo_gym.task import Mode
from typer.testing import CliRunner
assert "Halving" in known_agents()
checked = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["check", "agent", "Halving"])
lines = [line.split(maxsplit=3) for line in checked.stdout.splitlines()[1:]]
assert sum(words[:3] == ["ok", "the", "contract"] for words in lines) == len(Mode), checked.output
missing = {words[1]: " ".join(words[2:]) for words in lines if words[0] == "missing"}
assert checked.exit_code == 1 and missing["agents/cards.json"] == "make zoo", checked.output
assert set(missing) == {"agents/cards.json", "docs/methods/Halving.md", "docs/guide/catalogue.md", "tests/record.json",
                        "docs/data/agents.csv", "tests/surface.txt"}
run = cbo_gym.evaluate("Halving(every=10)", "CBO/Rosenbrock-v0", 0, horizon=60)
assert run.table["simple_regret"][-1] < 100.0
"""
MODE = """
import gymnasium as gym, numpy as np, cbo_gym
from cbo_gym.testing import check_agent, check_problem
check_problem("cbo_gym.problems.systems.thermostat:thermostat", mode="dueling")
check_problem("cbo_gym.problems.systems.function_networks:alpine2", mode="dueling", noise_std=1.0)
check_agent("Random", "CBO/Thermostat-Dueling-v0")
check_agent("Optuna", "CBO/Thermostat-Dueling-v0")
env = gym.make("CBO/Thermostat-Dueling-v0", render_mode="ansi")
env.reset(seed=0)
observation, reward, *_, info = env.step([[0.5, 0.0], [1.0, 0.0]])
assert observation["winner"] == 0.0 and list(info["intervention"]["heat"]) == [5.0, 10.0], info
assert "heat" in env.render()
run = cbo_gym.evaluate("Random", "CBO/Thermostat-Dueling-v0", 0, horizon=30)
assert abs(run.optimum + 0.25) < 0.01 and (run.table["instant_regret"] > 0).all()
assert "CBO/Custom-Dueling-v0" in gym.registry
"""

DATA = """
import gymnasium as gym, cbo_gym, pytest
from cbo_gym.evaluation.comparison.leaderboard import leaderboard
from cbo_gym.problems.modes.stepped import Steps
from cbo_gym.problems.systems.thermostat import thermostat
from cbo_gym.testing import check_agent, check_problem
ROOM, PROBLEM = "CBO/SteppedThermostat-v0", "cbo_gym.problems.systems.stepped_thermostat:stepped_thermostat"
check_problem(PROBLEM, mode="stepped")
check_agent("Random", ROOM)
check_agent("Optuna", ROOM)
env = gym.make(ROOM)
env.reset(seed=0)
*_, info = env.step([0.4, 0.6])
assert info["intervention"] == {"heat": 5.0, "blind": 1.0}, info
envs = gym.make_vec(ROOM, num_envs=2, vectorization_mode="vector_entry_point", counts=[2, 2])
envs.reset(seed=0)
*_, infos = envs.step([[0.4, 0.6], [0.6, 0.4]])
assert infos["intervention"]["heat"].tolist() == [0.0, 10.0], infos
run = cbo_gym.evaluate("Random", ROOM, 0, horizon=30)
assert abs(run.optimum + 0.25) < 0.01 and (run.table["instant_regret"] > -0.01).all()
assert cbo_gym.sweep(["Random", "Optuna"], ROOM, 2, "runs", horizon=5, n_jobs=1)["finished"] == 4
assert set(leaderboard("runs", modes=["stepped"]).per_env["agent"]) == {"Random", "Optuna"}
for counts in ((5,), (5, 1)):
    with pytest.raises(cbo_gym.errors.ArgumentError, match="Thermostat: .* count"):
        thermostat().with_data(Steps(counts))
with pytest.raises(cbo_gym.errors.ArgumentError, match="no stepped mode"):
    gym.make("CBO/Custom-Stepped-v0", problem=thermostat())
"""

STUDY = """
import cbo_gym, pytest
from cbo_gym.study import create_study, load_study
parameters = {"heat": {"node": "warmth", "bounds": (0.0, 10.0)}, "blind": {"node": "comfort", "bounds": (0.0, 1.0)}}
about = dict(reward="comfort", diagram="dag {warmth -> comfort}", parameters=parameters, mode="stepped", agent="Random")
study = create_study("room", storage="room.db", options={"counts": [5, 2]}, **about)
for _ in range(3):
    trial = study.ask()
    study.tell(trial, {"warmth": 15.0 + trial.do["heat"], "comfort": -1.0})
assert list(load_study(storage="room.db").interface.decode([0.4, 0.6]).soft) == [5.0, 1.0]
assert set(study.recommendation()) == {"heat", "blind"} and len(study.data()) == 3
study.report("room.html")
with pytest.raises(cbo_gym.errors.ArgumentError, match="stepped mode has no option 'count'; did you mean 'counts'"):
    create_study("other", storage="room.db", options={"count": [5, 2]}, **about)
with pytest.raises(cbo_gym.errors.ArgumentError, match="says nothing of positions"):
    create_study("other", storage="room.db", **about)
"""

PAGE = """
from cbo_gym.envs.registry import find_entry
from website.pages.environments import Environment, navigation, page
room = page(Environment(find_entry("CBO/SteppedThermostat-v0")))
for words in ("parameters, which go to the nearest position", "| `[0]` | `heat` | 0 to 10 | `warmth` |", "`counts`"):
    assert words in room, room
assert "Stepped mode" in [name for group in navigation() for name in group]
"""

METRIC = """
import cbo_gym
from cbo_gym.evaluation.comparison.leaderboard import leaderboard
runs = [cbo_gym.evaluate("Random", "CBO/Dropwave-v0", seed, horizon=5) for seed in range(3)]
table = leaderboard(runs).per_env
mean = sum(run.table["instant_regret"].max() for run in runs) / 3
assert abs(table["worst_round"][0] - mean) < 1e-12 and "worst_round_half" in table.columns, table.columns
"""


def recipes():
    """Of each recipe, the files by path."""
    page = (ROOT / "docs" / "guide" / "recipes.md").read_text()
    for section in page.split("\n## ")[1:]:
        yield [(path, string) for path, string in BLOCK.findall(section)]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with all that the recipes add."""
    root = tmp_path_factory.mktemp("package")
    (root / "docs").symlink_to(ROOT / "docs")
    # No results are published there, because it takes long to read them.
    (root / "results").mkdir()
    for folder in ("agents", "cbo_gym", "website"):
        copytree(ROOT / folder, root / folder, symlinks=True)
    for name in ("envs_registry.yaml", "suites.yaml", "pyproject.toml"):
        copyfile(ROOT / name, root / name)
    for path, string in (file for recipe in recipes() for file in recipe):
        target = root / path
        if path in INSERTED:
            before = target.read_text()
            assert before.count(INSERTED[path]) == 1
            target.write_text(before.replace(INSERTED[path], INSERTED[path] + string))
        elif target.exists():
            target.write_text(f"{target.read_text()}\n{string}")
        else:
            target.parent.mkdir(exist_ok=True)
            target.write_text(string)
    return root


QUICK = {"environment": ENVIRONMENT, "study": STUDY, "page": PAGE, "metric": METRIC}
CONTRACTS = {"agent": AGENT, "mode": MODE, "data": DATA}


@pytest.mark.parametrize(
    "recipes", [QUICK, pytest.param(CONTRACTS, marks=pytest.mark.slow)], ids=["quick", "contracts"]
)
def test_the_recipes_work(package, recipes):
    """In one process: most of the time is to import the package."""
    played = [f"exec(compile({code!r}, {name!r}, 'exec'), {{}})" for name, code in recipes.items()]
    here = f"import cbo_gym; assert cbo_gym.__file__.startswith({str(package)!r})"
    code = "\n".join([here, *played])
    done = subprocess.run([sys.executable, "-c", code], cwd=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # which names the recipe as a file


def test_recipes_cost_what_they_promise():
    """An environment: a file and an entry; an agent: a file and two lines; a mode: a folder, a line and an entry.

    A mode with data of its own: one file more, and here a system that has such data; a metric: nothing
    but a function and an entry.
    """
    files = [{path for path, _ in recipe} for recipe in recipes()]
    assert list(map(len, files)) == [2, 3, 5, 7, 1]
    assert all(not (ROOT / path).exists() for recipe in files for path in recipe - {*INSERTED, *APPENDED})
    lines = [string for recipe in recipes() for path, string in recipe if path == "cbo_gym/task.py"]
    assert [line.count("\n") for line in lines] == [1, 1]
    assert cbo_gym.Mode.MASKED in cbo_gym.Mode
