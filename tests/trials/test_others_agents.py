"""Packages that misbehave as soon as their agents are imported: whatever lists agents names them, and goes on."""

import json
import time

import pytest

from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.evaluation import load_runs
from cbo_gym.evaluation.play.players import LISTING_SECONDS
from tests.trials.helpers import end_of, environment, python

pytestmark = pytest.mark.slow

FINE = """
from cbo_gym import Agent, Mode

class A(Agent):
    modes = frozenset({Mode.SOFT})
    def act(self, observation):
        return self.task.action_space.low
"""
GARBLES = """
import os
for stream in range(3, 20):
    try:
        os.write(stream, b"junk" * 100)
    except OSError:
        pass
"""
MODULES = {  # what is done as they are imported
    "Raises": "raise RuntimeError('x' * 100_000 + chr(27) + '[31m')",
    "Broken": "def (",
    "Exits": "import sys; sys.exit('bye')",
    "Ends": "import os; os._exit(0)",
    "Sleeps": "import time; time.sleep(600)",
    "Holds": "import itertools; sum(itertools.repeat(0))",
    "Forks": "import os, time; os.fork() or time.sleep(600); os._exit(0)",
    "Reads": "input()",
    "Nothing": "A = 3",
    "NoAgent": "class A: __doc__ = 5",
    "Garbles": GARBLES,
    "Prints": "import os; print('NOISE'); os.write(1, b'NOISE'); os.system('echo NOISE')\n" + FINE,
    "Fine": FINE,
}  # fmt: skip
WORKING = {"Prints", "Fine"}
RED = "R\x1b[31med"
HANGING = {"Sleeps", "Holds"}
WITH_CARD = WORKING | {"Nothing"}  # the class of which can be looked at, though it makes no agent


def install(folder, package, names, module="", metadata=True):
    (folder / f"{package}.py").write_text(f"open({str(folder / 'imported')!r}, 'a').write('{package} ')\n{module}")
    installed = folder / f"{package}-1.0.dist-info"
    installed.mkdir()
    if metadata:
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = (f"{name} = {package}:A\n" for name in names)
    (installed / "entry_points.txt").write_text("[cbo_gym.agents]\n" + "".join(lines))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    for name, module in MODULES.items():
        install(folder, f"package_{name.lower()}", [name], module)
    install(folder, "thief", ["MCBO", "Fine"], FINE)
    install(folder, "nameless", ["Nameless"], FINE, metadata=False)
    install(folder, "red", [RED], FINE)
    return folder


def call(folder, *words, code=0, **variables):
    """What a command prints, the lines that it says, and its seconds; it leaves no process behind."""
    (folder / "imported").unlink(missing_ok=True)
    mark = f"{folder.name}-{time.monotonic()}"
    start = time.monotonic()
    done = python(*words, env=environment(mark, [folder], **variables), cwd=folder, check=False)
    seconds = time.monotonic() - start
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "NOISE" not in done.stdout
    assert end_of(mark) == []
    return done.stdout, done.stderr, seconds


def command(folder, *words, code=0):
    return call(folder, "-m", "cbo_gym", *words, code=code)


def left_out(said):
    return [line for line in said.splitlines() if "left out" in line]


def all_are_said(said, names):
    """Each in a line, with a reason, that is not too long."""
    lines = left_out(said)
    for name in names:
        assert sum(name in line for line in lines) == 1, (name, said)
    for name in HANGING:
        assert any(name in line and f"longer than {LISTING_SECONDS} s" in line for line in lines), said
    assert all(len(line) < 1000 for line in lines)


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_list_of_agents(installed, form):
    printed, said, seconds = command(installed, "agents", *(["--json"] if form == "json" else []))
    names = [one["name"] for one in json.loads(printed)] if form == "json" else printed.split()
    assert set(zoo()) - {"MCBO"} | WORKING - {"Fine"} | {"Nameless"} <= set(names)
    assert not (set(MODULES) - WITH_CARD) & set(names)
    all_are_said(said, [*(set(MODULES) - WITH_CARD), "'MCBO'", "'Fine'"])
    assert seconds < len(HANGING) * LISTING_SECONDS + 4 * len(MODULES)


def test_what_names_no_agent_of_theirs_imports_none(installed):
    printed, _, _ = command(installed, "run", "Random", "CBO/Dropwave-v0", "--horizon", "3")
    assert "Random on CBO/Dropwave-v0" in printed
    known, _, _ = call(
        installed, "-c", "from cbo_gym.agent_registry.finding import known_agents; print(*map(ascii, known_agents()))"
    )
    assert {repr(name) for name in MODULES} <= set(known.split())
    words = "cbo-gym run "
    variables = {"_CBO_GYM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
    completed, _, _ = call(installed, "-c", "from cbo_gym.cli import app; app(prog_name='cbo-gym')", **variables)
    assert set(zoo()) | set(MODULES) <= set(completed.split())
    printed, said, _ = command(installed, "sweep", "unasked", "-a", "Ran*", "-e", "CBO/Dropwave-v0", "--horizon", "1")
    assert left_out(said) == []
    assert not (installed / "imported").exists()


def test_a_sweep_of_all(installed):
    words = ["-a", "*", "-e", "CBO/Dropwave-v0", "--horizon", "1", "--seeds", "1", "--jobs", "2"]
    _, said, _ = command(installed, "sweep", "runs", *words)
    runs = {run.agent: run for run in load_runs(installed / "runs")}
    assert set(runs) == set(zoo()) - {"MCBO"} | WORKING - {"Fine"} | {"Nameless", RED}
    assert {runs[name].status for name in ("Random", "Prints", "Nameless")} == {"finished"}
    all_are_said(said, [*(set(MODULES) - WORKING), "'MCBO'", "'Fine'"])
