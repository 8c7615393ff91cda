"""Several processes that write to one folder: none waits for the dead, and nothing that was written is lost."""

import multiprocessing
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cbo_gym import evaluate
from cbo_gym.errors import OperationError
from cbo_gym.evaluation import Run, load_published, load_run, publish
from cbo_gym.evaluation.runs.folder import resumed_run, run_files
from cbo_gym.evaluation.runs.locking import LOCK_NAME, WaitingWarning, lock_folder
from cbo_gym.evaluation.runs.results import name_of, save_run

SPAWN = multiprocessing.get_context("spawn")
PROCESSES, RACES, RUNS = 8, 50, 10


HOLD = """
import filelock, sys, time
lock = filelock.FileLock(sys.argv[1])
lock.acquire()
print(flush=True)
time.sleep(60)
"""


def test_waiting_for_a_lock_warns_and_ends_and_a_dead_holder_blocks_no_process(tmp_path, monkeypatch):
    for name, seconds in (("WARN_SECONDS", 0.1), ("TIMEOUT_SECONDS", 0.3)):
        monkeypatch.setattr(f"cbo_gym.evaluation.runs.locking.{name}", seconds)
    save_run(tmp_path / "run.parquet", Run("A", "E", 0, 1, "soft", "failed"))
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path / LOCK_NAME], stdout=subprocess.PIPE) as holder:
        try:
            holder.stdout.readline()
            assert run_files(tmp_path) == [tmp_path / "run.parquet"]
            with (
                pytest.warns(WaitingWarning, match=rf"waiting for .* {tmp_path}, for at most 0\.3 seconds"),
                pytest.raises(OperationError, match=r"has been writing to .* for 0\.3 seconds; .* end it if it hangs"),
                lock_folder(tmp_path),
            ):
                pytest.fail("two have the lock")
        finally:
            holder.kill()
    assert (tmp_path / LOCK_NAME).exists()
    with lock_folder(tmp_path), lock_folder(tmp_path):
        assert (tmp_path / LOCK_NAME).exists()
    assert not (tmp_path / LOCK_NAME).exists()
    (tmp_path / "file").write_text("")
    folder = lock_folder(tmp_path / "file")
    with pytest.raises(OperationError, match=r"cannot write to .*file: .*; give a folder"), folder:
        pytest.fail("a file is no folder")


def at_once(do, folder):
    """What ``do`` returns for each of several processes and races, all of a race at once."""
    barrier = SPAWN.Barrier(PROCESSES)
    with SPAWN.Pool(PROCESSES, initializer=remember, initargs=(barrier,)) as pool:
        return pool.map(partial(race, do, folder), range(PROCESSES), chunksize=1)


def remember(barrier):
    global met
    met = barrier


def race(do, folder, me):
    found = []
    for number in range(RACES):
        met.wait(120)
        found.append(do(folder, number, me))
    return found


def publishes(folder, number, me):
    return publish(folder / f"from-{me}", folder / f"store-{number}", "mine").added


@pytest.mark.slow
def test_nothing_is_lost_of_what_several_processes_publish_at_once(tmp_path):
    run = evaluate("Random", "CBO/ToyGraph-v0", 0, horizon=3)
    for seed in range(PROCESSES * RUNS):
        one = replace(run, seed=seed)
        save_run(tmp_path / f"from-{seed // RUNS}" / name_of(one), one)
    added = at_once(publishes, tmp_path)
    for number in range(RACES):
        store = tmp_path / f"store-{number}"
        assert len(load_published(store)) == sum(own[number] for own in added) == PROCESSES * RUNS
        assert [path.name for path in store.iterdir()] == ["mine.parquet"]


def mends(folder, number, me):
    """A process that finds a file damaged moves it aside and writes a whole one."""
    run = replace(load_run(folder / "run"), seed=number)
    path = folder / "runs" / name_of(run)
    if me == 0:
        path.parent.mkdir(exist_ok=True)
        Path(f"{path}.new").write_bytes(b"damaged")
        Path(f"{path}.new").rename(path)
    met.wait(120)
    if resumed_run(path) is None:
        with lock_folder(path.parent):
            save_run(path, run)
    met.wait(120)
    return load_run(path) == run


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_of_several_sweeps_that_find_a_damaged_file_none_moves_a_whole_one_aside(tmp_path):
    save_run(tmp_path / "run", evaluate("Random", "CBO/ToyGraph-v0", 0, horizon=3))
    assert all(map(all, at_once(mends, tmp_path)))
    aside = list((tmp_path / "runs" / "damaged").iterdir())
    assert len(aside) == RACES
    assert {path.read_bytes() for path in aside} == {b"damaged"}
