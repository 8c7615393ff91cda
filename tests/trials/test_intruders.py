"""Agents and files that attack the processes of the referee."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from cbo_gym.evaluation import load_runs
from tests.trials.intruders import MARKER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

ROOT = Path(__file__).parents[2]
NOBODY = 65534
#: the interpreter of the tests may lie in root's home, where others cannot read it
INTERPRETERS = (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")


@cache
def interpreter(user):
    """An interpreter that the user can start, with the packages of this one; None if there is none."""
    for path in INTERPRETERS:
        try:
            words = [path, "-P", "-c", "import cbo_gym, cbo_gym.evaluation"]
            if (
                subprocess.run(words, env=variables("/nowhere"), user=user, capture_output=True, check=False).returncode
                == 0
            ):
                return path
        except OSError:
            continue
    return None


def variables(home, **more):
    path = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "HOME": str(home),
        "CBO_GYM_KEY": str(Path(home, "key")),
        "MPLCONFIGDIR": str(home),
        **more,
    }


def run_as(user, words, folder, **more):
    """Run ``python -P WORDS`` in a folder, as this user (None) or another one."""
    if user is not None:
        if os.name != "posix" or os.geteuid() != 0:
            pytest.skip("only root can become another user; the trial as this user is of an ordinary one")
        if interpreter(user) is None:
            pytest.skip("no interpreter of this version can be started by an ordinary user")
        shutil.chown(folder, user)
        for above in folder.parents:  # root's temporary folders are its own
            if above.owner() == "root" and above != Path("/") and not above.stat().st_mode & 0o001:
                above.chmod(above.stat().st_mode | 0o011)
    path = sys.executable if user is None else interpreter(user)
    return subprocess.run(
        [path, "-P", *words],
        cwd=folder,
        env=variables(folder, **more),
        user=user,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )


as_any_user = pytest.mark.parametrize("user", [None, NOBODY], ids=["this user", "ordinary user"])


SWEEP = """
import json, sys
from cbo_gym import Execution, sweep
agent, how = sys.argv[1], json.loads(sys.argv[2])
how = {"horizon": 4, "recommend": "end", "n_jobs": 1, "execution": Execution(**how)}
print(json.dumps(sweep(agent, "CBO/Dropwave-v0", 1, "runs", **how)))
"""


def swept(name, user, folder, how="{}", **more):
    done = run_as(user, ["-c", SWEEP, f"tests.trials.intruders:{name}", how], folder,
                  **{MARKER: str(folder / "marker")}, **more)  # fmt: skip
    assert done.stdout, done.stderr[-3000:]
    (run,) = load_runs(folder / "runs")
    return run


@as_any_user
@pytest.mark.parametrize("form", ["old", "new"])
def test_an_agent_runs_nothing_in_the_process_above(tmp_path, user, form):
    run = swept("WritesToItsReferee", user, tmp_path, CBO_GYM_TRIAL_FORM=form)
    assert not (tmp_path / "marker").exists()
    if user is not None or os.geteuid() != 0:
        assert run.status == "finished", run.error


@as_any_user
def test_an_agent_opens_nothing_of_the_process_above(tmp_path, user):
    if user is None and os.geteuid() == 0:
        pytest.skip("root may open all")
    assert "opened []" in swept("OpensItsReferee", user, tmp_path).error


def test_an_agent_sends_no_answer_ahead(tmp_path):
    run = swept("AnswersAhead", None, tmp_path)
    assert run.status == "failed"
    assert "gave an answer that was not asked for" in run.error


def test_the_state_of_an_agent_is_read_by_its_own_process_alone(tmp_path):
    """Its checkpoints are written and read by the process above."""
    run = swept("SavesAPickle", None, tmp_path, json.dumps({"checkpoint_every": 1}))
    assert run.status == "finished", run.error
    assert not (tmp_path / "marker").exists()


EVIL = "import os\nos.close(os.open({marker!r}, os.O_CREAT | os.O_WRONLY))\n"
NOT_SHADOWED = {"os", "sys", "builtins", "mine", "antigravity", "this"}
MINE = "from cbo_gym.agents import Random\n\n\nclass Mine(Random):\n    pass\n"


@as_any_user
@pytest.mark.parametrize("command", ["sweep", "verify"])
def test_no_file_of_the_working_folder_is_run(tmp_path, user, command):
    """But the one that is named."""
    (tmp_path / "mine.py").write_text(MINE)
    options = ["--horizon", "3", "--recommend", "end"]
    play = ["sweep", "-a", "mine:Mine", "-e", "CBO/Dropwave-v0", "--seeds", "1", "runs", *options]
    if command == "verify":
        called(user, tmp_path, play)
        called(user, tmp_path, ["publish", "runs", "--store", "store"])
        play = ["verify", "store", "--allow", "mine:Mine"]
    for name in filter(find_spec, sys.stdlib_module_names - NOT_SHADOWED):
        (tmp_path / f"{name}.py").write_text(EVIL.format(marker=str(tmp_path / "marker")))
    said = called(user, tmp_path, play)
    assert not (tmp_path / "marker").exists()
    assert "identical" in said if command == "verify" else "1 finished" in said, said


def called(user, folder, words):
    done = run_as(user, ["-m", "cbo_gym", *words], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout
