"""Stamps of code: what cannot change a run changes none, what can changes those of the runs that it can change."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cbo_gym
from cbo_gym.agents.zoo import zoo
from cbo_gym.evaluation.runs.closure import FACADES, NOT_AT_PLAY, at_play
from cbo_gym.evaluation.runs.meaning import meaning_of, syntax_tree
from cbo_gym.evaluation.runs.provenance import roots_of

CHECKOUT = Path(cbo_gym.__file__).parent.parent
ENVS = ("CBO/Dropwave-v0", "CBO/SSEMPeriodic-v1", "CBO/Chemostat-v0", "CBO/ToyGraph-v0")
MCBO, GP_UCB, RANDOM = (zoo()[name].partition(":")[0] for name in ("MCBO", "GP-UCB", "Random"))

SAME = """
import os
class A:
    b: int = 3
    def c(self, d, *e, f=None):
        g = f"{d:.2f}"
        return g
"""
ALSO = '''
"""What it is for."""
import os
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from cbo_gym import Task
class A:  # a remark
    """What it is."""

    b: int = 3
    """What that is."""
    def c(self, d: "Task", *e: int, f: float | None = None) -> str:
        """What it does."""
        g = (f"{d:.2f}")
        return (g)
'''


def test_only_what_is_done_counts():
    tree = meaning_of(syntax_tree(SAME))
    assert meaning_of(syntax_tree(ALSO.replace("from typing import TYPE_CHECKING\n", ""))) == tree
    changes = (
        ("b: int = 3", "b: float = 3"), ("b: int = 3", "b: int = 4"), ("3", "3.0"), ("f=None", "f=0"), (".2f", ".3f"),
        ("import os", "import sys"), ("return g", "return d"), ("*e, f", "*e, f, h"), ("return g", "return (g,)"),
        ("def c", "async def c"), ("b: int = 3", "'b: int = 3'"),
    )  # fmt: skip
    others = [meaning_of(syntax_tree(SAME.replace(*change))) for change in changes]
    assert len({tree, *others}) == len(changes) + 1


MORE = "\nMORE = 1\n"
#: what is edited, each by itself: a file, and what is written at its end
EDITS = {
    "a docstring": ("agents/networks/mcbo.py", '\n"""More.\n"""\n'),
    "a remark": ("agents/networks/mcbo.py", "\n# more\n"),
    "an agent": ("agents/networks/mcbo.py", MORE),
    "a shared model": ("agents/surrogates/gp/model.py", MORE),
    "a system": ("cbo_gym/problems/systems/ssem.py", MORE),
    "a system's data": ("cbo_gym/problems/systems/chemostat.yaml", "\n# more\n"),
    "a mode": ("cbo_gym/feedback/hard.py", MORE),
    "the scores": ("cbo_gym/evaluation/metrics/regret.py", MORE),
    "a half-written page": ("cbo_gym/evaluation/report/page.py", "\ndef half(\n"),
    "a half-written agent": ("agents/networks/mcbo.py", "\ndef half(\n"),
    "a page": ("cbo_gym/evaluation/report/page.py", MORE),
    "the command line": ("cbo_gym/cli/runs.py", MORE),
    "the list of agents": ("pyproject.toml", "\n# more\n"),
}
PRINTED = """
import json, sys
from pathlib import Path
from cbo_gym.evaluation.runs.provenance import sources_now
names, edits = json.load(sys.stdin)
before, changed = sources_now(names), {}
for what, (path, more) in edits.items():
    text = Path(path).read_text()
    Path(path).write_text(text + more)
    after = sources_now(names)
    changed[what] = [name for name in names if after[name] != before[name]]
    Path(path).write_text(text)
assert sources_now(names) == before
print(json.dumps(changed))
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Stamps that change with each edit of a copy of the checkout."""
    top = tmp_path_factory.mktemp("checkout")
    for name in ("cbo_gym", "agents"):
        shutil.copytree(CHECKOUT / name, top / name, symlinks=True)
    for name in ("pyproject.toml", "envs_registry.yaml", "suites.yaml"):
        shutil.copy(CHECKOUT / name, top / name)
    names = [*ENVS, *(path.partition(":")[0] for path in dict.fromkeys(zoo().values()))]
    done = subprocess.run(
        [sys.executable, "-c", PRINTED], input=json.dumps([list(dict.fromkeys(names)), EDITS]), text=True, cwd=top,
        env={**os.environ, "PYTHONPATH": str(top)}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {what: set(names) for what, names in json.loads(done.stdout).items()}


@pytest.mark.parametrize(
    "what", ["a docstring", "a remark", "a page", "a half-written page", "the command line", "the list of agents"]
)
def test_what_cannot_change_a_run_changes_no_stamp(changed, what):
    assert changed[what] == set()


def test_an_edit_changes_the_stamps_of_those_that_import_it(changed):
    auto, learned, eifn = (zoo()[name].partition(":")[0] for name in ("Auto", "LearnedGraph", "EIFN"))
    assert {MCBO, auto, learned} <= changed["an agent"]  # the last two make it by its name, when they play
    assert not {GP_UCB, RANDOM, *ENVS} & changed["an agent"]
    assert {MCBO, GP_UCB, eifn} <= changed["a shared model"]
    assert not {RANDOM, *ENVS} & changed["a shared model"]
    assert changed["a half-written agent"] == changed["an agent"]
    assert changed["a system"] == {"CBO/SSEMPeriodic-v1"}
    assert changed["a system's data"] == {"CBO/Chemostat-v0"}
    assert changed["a mode"] == {"CBO/ToyGraph-v0"}
    assert changed["the scores"] == set(ENVS)


#: an agent of each room, and what it plays
ROOMS = {
    "Random": "CBO/Dropwave-v0",
    "UCB": "CBO/IVBandit-v0",
    "SSEM-UCB": "CBO/SSEMPeriodic-v1",
    "LinSEM-UCB": "CBO/LinearSEMHierarchical5-v0",
    "GPOO": "CBO/GPBandit1-v0",
    "GP-UCB": "CBO/Alpine2-v0",
    "MCBO": "CBO/Dropwave-v0",
    "CBO": "CBO/ToyGraph-v0",
    "CoCaBO": "CBO/CoCaFig1-v0",
    "DCBO": "CBO/DCBOStat-v0",
    "qNEHVI-Network": "CBO/Alpine2-Cost-v0",
    "Auto": "CBO/ToyGraph-v0",
}
QUICK = 2  # of them take a second
PLAYED = """
import sys
from cbo_gym.evaluation import evaluate
evaluate(sys.argv[1], sys.argv[2], 0, horizon=3)
print(*(name for name in sys.modules if name.split(".")[0] == "cbo_gym"))
"""


def test_every_room_is_looked_at():
    rooms = {zoo()[name].split(".")[2] for name in ROOMS}
    assert rooms == {path.split(".")[2] for path in zoo().values()}


@pytest.mark.parametrize(
    "agent", [pytest.param(name, marks=[] if n < QUICK else [pytest.mark.slow]) for n, name in enumerate(ROOMS)]
)
def test_nothing_else_is_imported_at_play(agent):
    """What a fresh process has imported once it has played is what is stamped, or what the rule leaves out."""
    done = subprocess.run(
        [sys.executable, "-c", PLAYED, agent, ROOMS[agent]], text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    stamped = at_play([*roots_of(zoo()[agent].partition(":")[0]), *roots_of(ROOMS[agent])])
    others = set(done.stdout.split()) - stamped - FACADES
    assert [name for name in sorted(others) if not any(f"{name}.".startswith(f"{part}.") for part in NOT_AT_PLAY)] == []
