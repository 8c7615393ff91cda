"""Four processes that ask and tell on a database while they are killed, and checks of the study after that."""

import itertools
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

from cbo_gym.study import load_study
from cbo_gym.study.log import Log
from tests.support.studies import append, events_of, open_log, simulate

WORKERS = 4
PATIENCE = 300  # seconds for which a worker may finish its round


def work(storage, folder, index, lifetime):
    """Ask and tell until there is a file ``stop``, and write the answer of every call to a file.

    Args:
        storage: database of the study.
        folder: folder of the file with answers.
        index: number of this worker.
        lifetime: number of writes to the database, after the last of which the process is killed before it answers.
    """
    if lifetime is not None:
        _die_after(lifetime)
    study = load_study(storage=storage)
    with Path(folder, f"{index}.txt").open("a", encoding="utf-8", buffering=1) as answers:
        while not Path(folder, "stop").exists():
            trial = study.ask()
            answers.write(f"asked {trial.number} 0\n")
            titre = trial.number + index / 1000
            study.tell(trial, simulate(trial.do) | {"titre": titre})
            answers.write(f"told {trial.number} {titre!r}\n")


def _die_after(lifetime):
    append, calls = Log.append, itertools.count(1)

    def deadly(*arguments):
        written = append(*arguments)
        if written and next(calls) >= lifetime:
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    Log.append = deadly


def play(storage, folder, kills, seed, pause=0.3):
    """Let four processes work until ``kills`` were killed: some at any time, others between writing and answering.

    Args:
        storage: database of the study.
        folder: folder of the files with answers.
        kills: number of kills.
        seed: seed of the times and the processes that are killed.
        pause: longest time between kills, in seconds; a round must fit into it.

    Returns:
        answers to the processes: ``("asked" or "told", trial, value)``.
    """
    draw, indices = random.Random(seed), itertools.count()
    context = multiprocessing.get_context("forkserver")
    # a new process is at work at once, so that kills meet work
    context.set_forkserver_preload([__name__, "cbo_gym.agents.black_box.gp_ucb", "psycopg"])

    def started():
        lifetime = draw.randint(1, 6) if draw.random() < 0.5 else None
        process = context.Process(target=work, args=(storage, folder, next(indices), lifetime))
        process.start()
        return process

    workers, killed = [started() for _ in range(WORKERS)], 0
    try:
        while killed < kills:
            time.sleep(draw.uniform(0.02, pause))
            if draw.random() < 0.3:
                draw.choice(workers).kill()
                time.sleep(0.02)
            for index, worker in enumerate(workers):
                if not worker.is_alive():
                    assert worker.exitcode == -signal.SIGKILL
                    killed += 1
                    workers[index] = started()
        Path(folder, "stop").touch()
        for worker in workers:
            worker.join(PATIENCE)
            assert worker.exitcode in (0, -signal.SIGKILL)
    finally:
        for worker in workers:
            worker.kill()
    lines = [line.split() for path in Path(folder).glob("*.txt") for line in path.read_text().splitlines()]
    return [(kind, int(number), float(value)) for kind, number, value in lines]


def check(storage, folder, said):
    """Assert that no answer is lost, no number was given twice, and the log replays to the same state.

    Returns:
        number of trials, and number of trials with an outcome.
    """
    counts = Counter(number for kind, number, _ in said if kind == "asked")
    assert set(counts.values()) == {1}
    study = load_study(storage=storage)
    trials = {entry.number: entry for entry in study.trials}
    assert list(trials) == list(range(1, len(trials) + 1))
    assert set(counts) <= set(trials)
    for kind, number, value in said:
        if kind == "told":
            assert trials[number].status == "measured"
            assert trials[number].values["titre"] == value
    again = replay_log(storage, Path(folder, "again.db"))
    assert states(again) == states(study)
    assert again.ask().do == load_study(storage=storage).ask().do
    return len(trials), sum(entry.status == "measured" for entry in trials.values())


def replay_log(source, path):
    """Return a study with a copy of another study's log, and without a snapshot of its agent."""
    log = Log(path, create=True)
    log.create(load_study(storage=source).name, open_log(source)[1].description)
    append(path, [(event.kind, event.payload) for event in events_of(source)])
    return load_study(storage=path)


def states(study):
    return study.to_frame().drop("asked", "ended").to_dicts()
