"""Processes, runs and files of the trials."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl
import psutil

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs import oracle_of
from cbo_gym.envs.making import make_env
from cbo_gym.evaluation import Run, load_runs
from cbo_gym.evaluation.runs.results import METADATA_KEY, TIMING_COLUMNS, name_of

ROOT = Path(__file__).parents[2]
MARK = "CBO_GYM_TRIAL"  # an environment variable that marks the processes of a trial


def say(what: str, *numbers: str) -> None:
    print(f"\n{what}: {', '.join(numbers)}", flush=True)


def environment(mark: str = "", path: Iterable[Path] = (), **more: str) -> dict[str, str]:
    """Environment variables of a process with the package of this checkout, some folders before it, and one thread."""
    found = os.pathsep.join(map(str, [*path, ROOT]))
    return {**os.environ, MARK: mark, "PYTHONPATH": found, "OMP_NUM_THREADS": "1", **more}


def python(*words: object, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, by default in :func:`environment`, and without an error."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options = {**streams, "text": True, "timeout": 300, "env": environment(), **options}
    done = subprocess.run([sys.executable, *map(str, words)], check=False, **options)
    assert done.returncode == 0 or not check, done.stderr[-3000:]
    return done


def command(*words: object, **options: Any) -> tuple[int, str, str]:
    """Exit status, output and errors of the command line, which never end in a traceback."""
    done = python("-m", "cbo_gym", *words, check=False, **options)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def essence(run: Run) -> tuple[object, ...]:
    """The parts of a run that are the same whenever it is played: all but its seconds and the date."""
    table = run.table.drop(TIMING_COLUMNS, strict=False)
    columns = {name: repr(table[name].to_list()) for name in table.columns}
    return name_of(run), run.status, run.optimum, run.random_value, run.choices, columns


def essences(folder: Path) -> dict[str, tuple[object, ...]]:
    return {name_of(run): essence(run) for run in load_runs(folder)}


def played_again(run: Run) -> None:
    """The recorded actions of a soft run lead to the recorded rewards, and the oracle's to the recorded scores."""
    env: gym.Env = make_env(Spec.parse(run.env), run.horizon)
    env.reset(seed=run.seed)
    actions = [np.array(action) for action in run.table["action"].to_list()]
    rounds = [env.step(action) for action in actions]
    assert run.table["reward"].to_list() == [reward for _, reward, *_ in rounds]
    assert run.table["nodes"].to_list() == [observation["nodes"].tolist() for observation, *_ in rounds]
    oracle = oracle_of(env)
    expected = oracle.expected_rewards(actions).value
    assert run.optimum == oracle.optimum.value
    np.testing.assert_array_equal(run.table["expected_reward"], expected)
    np.testing.assert_allclose(run.table["cumulative_regret"], np.add.accumulate(run.optimum - expected))
    assert (run.table.select(TIMING_COLUMNS).to_numpy() >= 0.0).all()


def forged(path: Path, **changes: object) -> None:
    """Give a file other metadata, and a checksum that fits."""
    stored = json.loads(pl.read_parquet_metadata(path)[METADATA_KEY]) | changes | {"checksum": "0" * 64}
    content = BytesIO()
    pl.read_parquet(path).write_parquet(content, metadata={METADATA_KEY: json.dumps(stored)})
    blank = content.getvalue()
    path.write_bytes(blank.replace(b"0" * 64, sha256(blank).hexdigest().encode()))


def alive(mark: str) -> list[psutil.Process]:
    """Processes that carry the mark, zombies left out."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def end_of(mark: str, seconds: float = 5.0) -> list[psutil.Process]:
    """Return the processes that are still alive after so many seconds, and kill them."""
    deadline = time.monotonic() + seconds
    while (left := alive(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for process in left:
        process.kill()
    return left
